"""An Ollama server on loopback: its wire format, for the unmodified `ollama` client, and whatever can go wrong with it.

What a chat is answered with is a function of the request's body: a `Reply`. It is sent as Ollama sends it to a client
that asks for no stream, in one object. Everything that was received is in `log`. Standard library alone; it binds
127.0.0.1 and no other address.
"""

import gzip
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.loopback import QuietHandler, listening

Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What a chat is answered with.

    Attributes:
        text: The content; `thinking` is what goes into the field of that name.
        read: What is said of the tokens read, `output` of those written; None leaves the field out, `all` counts four
            characters of what was sent as one.
        model: What the server says it ran; None repeats what was asked for.
        reason: Why it ended.
        status: The HTTP status; other than 200, `text` is the error.
        fault: What goes wrong on the way: `reset` cuts the connection in the midst of the reply, `torn` ends it there,
            `hang` sends the head and then nothing, `drip` a byte at a time without end, `headers` the same with the
            head, `flood` sends white space without end, `packed` compresses what nobody asked to be compressed, `junk`
            is not JSON at all.
    """

    text: str = ""
    thinking: str = ""
    read: int | Literal["all"] | None = "all"
    output: int | None = 20
    model: str | None = None
    reason: str = "stop"
    status: int = 200
    fault: str = ""


Behaviour = Callable[[Body], "Reply | Mapping[str, Any] | str"]


def fill(schema: Mapping[str, Any], within: Mapping[str, Any] | None = None) -> Any:
    """A value that a JSON schema allows: the last of a list of values, else the plainest there is."""
    within = within or schema
    if "$ref" in schema:
        return fill(within["$defs"][schema["$ref"].rpartition("/")[2]], within)
    if "const" in schema or "enum" in schema:
        return schema.get("const", [None, *schema.get("enum", ())][-1])
    if schema.get("type") == "object":
        return {name: fill(property_schema, within) for name, property_schema in schema.get("properties", {}).items()}
    return {"array": [], "integer": 0, "number": 0.5, "boolean": True}.get(schema.get("type", ""), "as asked")


def obedient(body: Body) -> str:
    """Write what the schema allows, as a model does whose output is constrained."""
    return json.dumps(fill(body["format"])) if isinstance(body.get("format"), dict) else "Good day."


@dataclass
class Models:
    """What the server has: names, and what `/api/show` says of each. `pull` adds a name of `remote`, in `steps`.

    `stall` is what a pull does after its second step: `hang` says nothing more, `repeat` says the same again and again;
    `pause` is how many seconds lie before each step.
    """

    names: list[str] = field(default_factory=lambda: ["deepseek-r1:7b"])
    remote: tuple[str, ...] = ("deepseek-r1:7b",)
    context_length: int = 131_072
    capabilities: tuple[str, ...] = ("completion", "thinking")
    steps: tuple[Mapping[str, Any], ...] = (
        {"status": "pulling manifest"},
        {"status": "pulling 96c415656d37", "digest": "sha256:96c4", "total": 1000, "completed": 400},
        {"status": "pulling 96c415656d37", "digest": "sha256:96c4", "total": 1000, "completed": 1000},
        {"status": "verifying sha256 digest"},
        {"status": "success"},
    )
    stall: str = ""
    pause: float = 0.0


class OllamaServer(ThreadingHTTPServer):
    """The server. `log` holds method, path, body and headers of each request; `hangup` is set once a client hung up.

    `size` counts the bytes of responses without end.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, behaviour: Behaviour, models: Models) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour, self.models = behaviour, models
        self.log: list[tuple[str, str, Body, Mapping[str, str]]] = []
        self.hangup = threading.Event()
        self.size = 0

    @property
    def address(self) -> str:
        """What to give as `host`."""
        return f"http://127.0.0.1:{self.server_port}"

    def bodies(self, path: str = "/api/chat") -> list[Body]:
        return [body for _, target, body, _ in self.log if target == path]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone; anything else is an error of this file."""
        if isinstance(sys.exception(), ConnectionError):
            self.hangup.set()
        else:
            super().handle_error(request, client_address)


class _Handler(QuietHandler, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _at(self) -> OllamaServer:
        assert isinstance(self.server, OllamaServer)
        return self.server

    def do_GET(self) -> None:
        self._at.log.append(("GET", self.path, {}, dict(self.headers)))
        names = self._at.models.names
        models = [{"name": name, "model": name, "size": 1, "digest": "d", "details": {}} for name in names]
        pages: dict[str, Any] = {"/api/tags": {"models": models}}
        if self.path in pages:
            self._object(pages[self.path])
        else:
            self.whole(b"404 page not found", 404, "text/plain")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._at.log.append(("POST", self.path, body, dict(self.headers)))
        handlers = {"/api/chat": self._chat, "/api/show": self._show, "/api/pull": self._pull}
        if self.path in handlers:
            handlers[self.path](body)
        else:
            self.whole(b"404 page not found", 404, "text/plain")

    def _chat(self, body: Body) -> None:
        if body["model"] not in self._at.models.names:
            self._missing(body["model"])
            return
        item = self._at.behaviour(body)
        reply = Reply(item) if isinstance(item, str) else item if isinstance(item, Reply) else Reply(json.dumps(item))
        if reply.status != 200:
            self._object({"error": reply.text}, reply.status)
            return
        if reply.fault:
            self._fail(reply.fault, _encode(_whole(reply, body)))
        else:
            self._object(_whole(reply, body))

    def _show(self, body: Body) -> None:
        models = self._at.models
        if body["model"] not in models.names:
            self._missing(body["model"])
            return
        details = {"family": "qwen2", "parameter_size": "7.6B", "quantization_level": "Q4_K_M"}
        about = {"general.architecture": "qwen2", "qwen2.context_length": models.context_length}
        self._object({"details": details, "model_info": about, "capabilities": list(models.capabilities)})

    def _pull(self, body: Body) -> None:
        if body["model"] not in self._at.models.remote:
            self._stream([{"status": "pulling manifest"}, {"error": "pull model manifest: file does not exist"}])
            return
        models = self._at.models
        if models.stall:
            self._stall(models)
            return
        models.names.append(body["model"])
        self._stream(list(models.steps), models.pause)

    def _stall(self, models: Models) -> None:
        self.begin(Content_Type="application/x-ndjson", Transfer_Encoding="chunked")
        for step in models.steps[:2]:
            self._chunk(_encode(step))
        while models.stall == "repeat":
            time.sleep(0.02)
            self._chunk(_encode(models.steps[1]))
        self._await_end()

    def _missing(self, model: str) -> None:
        self._object({"error": f"model '{model}' not found"}, 404)

    def _fail(self, fault: str, whole: bytes) -> None:
        if fault == "headers":
            self._drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"z" * 4000)
            return
        if fault == "packed":
            self.begin(Content_Encoding="gzip")
            self.wfile.write(gzip.compress(bytes(2**24)))
            self.close_connection = True
            return
        self.begin(Content_Type="application/x-ndjson", Transfer_Encoding="chunked")
        if fault == "flood":
            while True:
                self._chunk(b" " * 2**16)
                self._at.size += 2**16
        elif fault == "hang":
            self._await_end()
        elif fault == "drip":
            self._drip(b"10000\r\n" + b" " * 4000)
        elif fault == "junk":
            self._chunk(b"<html>It works!</html>\n")
            self._chunk(b"")
        else:
            self._chunk(whole[:40])
            if fault == "reset":
                self.reset()
            else:
                self._chunk(b"")

    def _drip(self, data: bytes) -> None:
        for byte in data:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.02)

    def _await_end(self) -> None:
        self.connection.settimeout(20)
        if self.connection.recv(1) == b"":
            self._at.hangup.set()
        self.close_connection = True

    def _stream(self, lines: list[Any], pause: float = 0.0) -> None:
        self.begin(Content_Type="application/x-ndjson", Transfer_Encoding="chunked")
        for line in lines:
            time.sleep(pause)
            self._chunk(_encode(line))
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _object(self, content: Any, status: int = 200) -> None:
        self.whole(json.dumps(content).encode(), status, "application/json; charset=utf-8")


def _whole(reply: Reply, body: Body) -> Body:
    """The reply as an object: what was thought, what was said, and the totals."""
    message = {"role": "assistant", "content": reply.text, **({"thinking": reply.thinking} if reply.thinking else {})}
    tokens = sum(len(message["content"]) // 4 + 8 for message in body["messages"])
    counts = {"prompt_eval_count": tokens if reply.read == "all" else reply.read, "eval_count": reply.output}
    totals = {name: count for name, count in counts.items() if count is not None}
    about = {"model": reply.model or body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message}
    return {**about, "done": True, "done_reason": reply.reason, "total_duration": 5, **totals}


def _encode(line: Any) -> bytes:
    return json.dumps(line).encode() + b"\n"


def ollama_server(
    behaviour: Behaviour = obedient, models: Models | None = None
) -> AbstractContextManager[OllamaServer]:
    return listening(OllamaServer(behaviour, models or Models()))
