"""An LM server on loopback that speaks the OpenAI chat-completions format, for an unmodified `dspy.LM("openai/...")`.

What it answers is a function of what it is asked, so that runs can be compared. It keeps a log of the requests that it
received in full, and of which of these it finished answering. It understands the prompts of the three roles, of a
certificate with the fields question, evidence and answer, and of a program that answers a question. Standard library
alone; it binds 127.0.0.1 and no other address.

Run: python -m tests.lm_server [--delay SECONDS] [--faults SHARE | --steady]. Prints its address; ends when its standard
input does.
"""

import argparse
import hashlib
import json
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.loopback import QuietHandler, listening

_ROLES = {"judge": "preferred", "deriver": "derived_answer", "repairer": "repaired_answer"}
_PLAIN = {"certificate": "certified", "program": "answer"}
_SECTION = re.compile(r"\[\[ ## (\w+) ## \]\]\n(.*?)(?=\n\n\[\[ ## |\n\nRespond with|\n\nReply with)", re.DOTALL)
_FENCE = re.compile(r"<\w+(?: \d+)? ([b-z]{8,})>\n(.*?)\n</\w+(?: \d+)? \1>", re.DOTALL)


@dataclass(frozen=True)
class Request:
    """A request as the server understands it.

    Attributes:
        token: The key that it came with. times: how often it was asked by now. headers: path and headers.
    """

    token: str
    role: str
    question: str
    evidence: tuple[str, ...]
    candidates: tuple[str, ...]
    times: int = 1
    headers: tuple[str, ...] = ()

    def draw(self) -> random.Random:
        """A source of random numbers that depends on what is asked, and not on who asks or how often."""
        material = [self.role, self.question, *self.evidence, *self.candidates]
        return random.Random(hashlib.sha256("\0".join(material).encode()).digest())


@dataclass(frozen=True)
class Answer:
    """What to do with a request: reply with text, or with an HTTP error, or cut the connection (`status` 0).

    Attributes:
        delay: Seconds before anything is sent. drip: seconds before each hundredth of the answer.
        code: What an error calls itself. retry_after: the header of an error.
        finish: Why the LM stopped. changes: other values for the fields of a completion; None leaves one out.
        cut: How many bytes of the body are sent before the connection is reset.
        body: What is sent in place of a completion. copies: how often the answer is sent. gap: seconds between copies.
        closes: Whether the connection is closed after it.
    """

    text: str = ""
    status: int = 200
    delay: float = 0.0
    drip: float = 0.0
    code: str | None = None
    retry_after: str = "0"
    finish: str = "stop"
    changes: Mapping[str, Any] = field(default_factory=dict)
    cut: int | None = None
    body: bytes | None = None
    copies: int = 1
    gap: float = 0.0
    closes: bool = False


Behaviour = Callable[[Request], Answer]


@dataclass
class Entry:
    """One request that was received in full.

    `status` is what it was answered with, 0 until it is; `over`: it is dealt with; `whole`: the whole answer was
    handed to the system.
    """

    token: str
    role: str
    question: str
    model: str = ""
    status: int = 0
    over: bool = False
    whole: bool = False


def obliging(request: Request) -> Answer:
    """Answer as a middling LM would: mostly usable, sometimes wrong, sometimes not what was asked for."""
    draw = request.draw()
    if draw.random() < 0.06:
        return Answer("I would rather talk about something else.")
    return Answer(json.dumps(_REPLIES[request.role](request, draw)))


def unsteady(share: float, delay: float) -> Behaviour:
    """Answer as `obliging`, up to `delay` seconds late; a share of the questions at their second attempt only."""

    def behave(request: Request) -> Answer:
        draw = request.draw()
        draw.random()
        late, fault = delay * draw.random(), draw.choice((429, 500, 503))
        if draw.random() < share and request.times == 1:
            return Answer(status=fault, delay=late)
        return Answer(obliging(request).text, delay=late)

    return behave


def steady(delay: float) -> Behaviour:
    """Answer as `obliging` would if it were always usable and brief, after `delay` seconds."""

    def behave(request: Request) -> Answer:
        reply = _REPLIES[request.role](request, request.draw())
        brief = {name: "seen" if name == "judge_rationale" else value for name, value in reply.items()}
        return Answer(json.dumps(brief), delay=delay)

    return behave


def _verdict(request: Request, draw: random.Random) -> dict[str, Any]:
    scores = [[draw.randrange(11) for _ in range(8)] for _ in request.candidates]
    # Some reasons are as long as a page of memory and more: those are the lines that a kill can tear.
    reason = "seen in the evidence " * draw.choice((1, 3, 10, 300, 900))
    return {"judge_rationale": reason, "assessments": scores, "preferred": draw.randrange(len(request.candidates))}


def _repair(request: Request, draw: random.Random) -> dict[str, Any]:
    if not request.evidence or draw.random() < 0.3:
        return {"repair_passage": -1, "repaired_answer": ""}
    number = draw.randrange(len(request.evidence))
    return {"repair_passage": number, "repaired_answer": request.evidence[number].split()[-1].strip(".")}


def _derivation(request: Request, draw: random.Random) -> dict[str, Any]:
    first, second = map(int, re.findall(r"\d+", request.question)[-2:])
    total = first + second + (draw.random() < 0.2)
    step = {"expression": f"{first} + {second}", "value": str(total)}
    check = f"{total} - {second} = {first}"
    return {"derivation_steps": [step], "derived_answer": str(total), "consistency_check": check}


def _certificate(request: Request, draw: random.Random) -> dict[str, Any]:
    return {"certified": any(request.candidates[0] in text for text in request.evidence)}


_REPLIES: dict[str, Callable[[Request, random.Random], dict[str, Any]]] = {
    "judge": _verdict, "deriver": _derivation, "repairer": _repair, "certificate": _certificate,
}  # fmt: skip


def understand(token: str, body: dict[str, Any]) -> Request:
    """Read a request: whose turn it is, and what it is about."""
    system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
    fields = (_ROLES | _PLAIN).items()
    role = next(role for role, field in fields if f'"{field}":' in system or f"`{field}`" in system)
    sections = dict(_SECTION.findall(user))
    if role in _PLAIN:
        evidence = json.loads(sections.get("evidence", "[]"))
        return Request(token, role, sections["question"], tuple(evidence), (sections.get("answer", ""),))
    lists = {name: json.loads(sections[name]) if name in sections else [] for name in ("evidence", "candidates")}
    evidence, candidates = (tuple(_inside(text) for text in lists[name]) for name in ("evidence", "candidates"))
    return Request(token, role, _inside(sections["question"]), evidence, candidates)


def _inside(text: str) -> str:
    match = _FENCE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r:.200} is not fenced")
    return match[2]


class LMServer(ThreadingHTTPServer):
    """The server. `log`, of all requests in order of arrival, may be read at any time."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, behaviour: Behaviour = obliging) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour = behaviour
        self.log: list[Entry] = []
        self._times: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def receive(self, token: str, body: dict[str, Any], headers: tuple[str, ...] = ()) -> tuple[Request, Entry]:
        request = replace(understand(token, body), headers=headers)
        entry = Entry(token, request.role, request.question, body["model"])
        with self._lock:
            self.log.append(entry)
            self._times[token, request.role, request.question] += 1
            return replace(request, times=self._times[token, request.role, request.question]), entry

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone; anything else is an error of this file."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(QuietHandler, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet: the client would wait for a second one

    @property
    def _lm(self) -> LMServer:
        assert isinstance(self.server, LMServer)
        return self.server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if len(body) < int(self.headers["Content-Length"]):  # the client went away while it was asking
            self.close_connection = True
            return
        head = (self.path, *map(str, self.headers.values()))
        request, entry = self._lm.receive(self.headers["Authorization"].removeprefix("Bearer "), json.loads(body), head)
        try:
            answer = self._lm.behaviour(request)
            entry.status = answer.status
            time.sleep(answer.delay)
            if answer.status:
                self._send(answer, _completion(answer, len(body), id(entry)))
            else:
                self.reset()
            entry.whole = True
        finally:
            entry.over = True

    def do_GET(self) -> None:
        prefix = self.path.removeprefix("/v1/")
        self._send(Answer(), [asdict(entry) for entry in list(self._lm.log) if entry.token.startswith(prefix)])

    def _send(self, answer: Answer, content: Any) -> None:
        data = json.dumps(content).encode() if answer.body is None else answer.body
        for copy in range(answer.copies):
            time.sleep(answer.gap if copy else 0)
            late = {"Retry_After": answer.retry_after} if answer.status >= 400 else {}
            last = {"Connection": "close"} if answer.closes else {}
            self.begin(answer.status, Content_Type="application/json", Content_Length=len(data), **late, **last)
            self._write(answer, data[: answer.cut])
        if answer.cut is not None:
            self.reset()

    def _write(self, answer: Answer, data: bytes) -> None:
        step = len(data) // 100 + 1 if answer.drip else max(len(data), 1)
        for start in range(0, len(data), step):
            time.sleep(answer.drip)
            self.wfile.write(data[start : start + step])
            self.wfile.flush()


def _completion(answer: Answer, size: int, number: int) -> dict[str, Any]:
    if answer.status >= 400:
        return {"error": {"message": "not now", "type": "server_error", "code": answer.code, "param": None}}
    read, output = size // 4, len(answer.text) // 4 + 1
    message = {"role": "assistant", "content": answer.text}
    completion = {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 0, "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "finish_reason": answer.finish, "message": message}],
        "usage": {"prompt_tokens": read, "completion_tokens": output, "total_tokens": read + output},
        **answer.changes,
    }  # fmt: skip
    return {name: value for name, value in completion.items() if value is not None}


def serving(behaviour: Behaviour = obliging) -> AbstractContextManager[LMServer]:
    return listening(LMServer(behaviour))


def main() -> None:
    """Serve until standard input ends, which it does when whoever started this process does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.0, help="longest delay of a reply, in seconds")
    parser.add_argument("--faults", type=float, default=0.0, help="share of questions answered at a second attempt")
    parser.add_argument("--steady", action="store_true", help="answer every question, always with that delay")
    options = parser.parse_args()
    with serving(steady(options.delay) if options.steady else unsteady(options.faults, options.delay)) as server:
        sys.stdout.write(f"{server.address}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
