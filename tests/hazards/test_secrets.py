"""A credential is never written or shown: a canary in each slot that can hold one, and a server that sends it back."""

import base64
import html
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr

from eldgr_dspy.errors import EldgrError
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.engines.ollama import ollama
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.redaction import LEAST, LEAST_DIGITS, MASK, redact, redact_message, redact_value, remember
from tests.asking.transport import number_of
from tests.capitals import row, write_pool
from tests.case_tables import each_case, tables_of
from tests.lm_server import Answer, LMServer, Request, obliging, serving
from tests.ollama_server import OllamaServer, Reply, ollama_server

pytestmark = [
    pytest.mark.slow,  # whole runs for each slot that may hold a credential
    pytest.mark.usefixtures("collect"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
Spell = Callable[[str], str]
Faulty = Callable[[Request, Spell], Answer]
SPELLINGS: tuple[Spell, ...] = (
    str,
    quote,
    lambda text: quote(text, safe=""),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(f"x{text}".encode()).decode().rstrip("="),
    lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    lambda text: text.encode().hex().upper(),
    lambda text: json.dumps({"detail": text}).replace("/", r"\/"),
    lambda text: json.dumps({"detail": json.dumps(text)}),
    lambda text: repr([repr(f'"{text}"'.encode())]),
    lambda text: json.dumps(json.dumps(json.dumps(repr([text])))),
    html.escape,
    str.upper,
)
CANARIES = iter(range(1_000_000))
SECRETS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("passwd", "proxy_auth", "pwd", "bearer", "token"), str),
    "headers": lambda canary: {"X-Id": canary},
    "api_key": SecretStr,  # which hides itself when it is printed
}
KEY = "\u0130sk-cAnary/known+0=%1\"2\\3'4é"
ESCAPES: list[Callable[[str], str]] = [
    lambda sign: sign,
    lambda sign: f"\\u{ord(sign):04x}",
    lambda sign: f"\\\\u{ord(sign):04X}",
    lambda sign: f"\\x{ord(sign):02x}",
    lambda sign: f"%{ord(sign):02X}",
    lambda sign: f"%25{ord(sign):02x}",
    lambda sign: f"&#{ord(sign)};",
    lambda sign: f"&#x{ord(sign):02x};",
    lambda sign: f"&amp;#{ord(sign):03};",
    html.escape,
]


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def echo_of(request: Request, spell: Spell) -> str:
    """What the server received and holds a canary, in a spelling."""
    lines = [one for one in request.headers if "anary" in one.lower() or "anary" in _decode(one)]
    return " ".join(map(spell, lines)) or "nothing"


def _decode(header: str) -> str:
    try:
        return base64.b64decode(header.partition(" ")[2]).decode("latin-1")
    except ValueError:
        return ""


def refusing(status: int, code: str | None = None, padding: int = 0) -> Faulty:
    def answer(request: Request, spell: Spell) -> Answer:
        message = f"not with {'x' * padding}{echo_of(request, spell)}"
        body = {"error": {"message": message, "type": "e", "code": code, "param": message}}
        return Answer(status=status, body=json.dumps(body).encode())

    return answer


def replying(change: Callable[[dict[str, Any], str], Any]) -> Faulty:
    """A reply of the role that is asked, changed by what the server received."""
    replies = {
        "judge": {"judge_rationale": "seen", "assessments": [], "preferred": 2},
        "repairer": {"repair_passage": 0, "repaired_answer": "Lyon"},
    }

    def answer(request: Request, spell: Spell) -> Answer:
        reply = change(replies[request.role], echo_of(request, spell))
        return reply if isinstance(reply, Answer) else Answer(reply if isinstance(reply, str) else json.dumps(reply))

    return answer


def within(*names: str) -> Faulty:
    return replying(lambda reply, echo: {name: echo if name in names else value for name, value in reply.items()})


def sending(body: Callable[[str], str], **options: Any) -> Faulty:
    return lambda request, spell: Answer(body=body(echo_of(request, spell)).encode(), **options)


def about(name: str) -> Faulty:
    """A good answer with an echo in a field of the completion."""
    return lambda request, spell: Answer(obliging(request).text, changes={name: echo_of(request, spell)})


FAULTS: dict[str, Faulty] = {
    "400": refusing(400),
    "the model that answered": about("model"),
    "408": refusing(408),
    "the id of the answer": about("id"),
    "422": refusing(422),
    "a rationale, an answer": within("judge_rationale", "repaired_answer"),
    "429": refusing(429),
    "a preference, a passage": within("preferred", "repair_passage"),
    "500": refusing(500),
    "a further field": replying(lambda reply, echo: {**reply, f"{'x' * 50}{echo}": 1}),
    "502": refusing(502),
    "a field twice": replying(lambda reply, echo: f"{{{json.dumps(echo)}: 1, {json.dumps(echo)}: 2}}"),
    "503": refusing(503),
    "prose": replying(lambda reply, echo: f"I was asked with {echo}."),
    "302": refusing(302),
    "400 for the length": refusing(400, "context_length_exceeded"),
    "400, cut within the key": refusing(400, padding=270),
    "a reply cut by its limit": replying(lambda reply, echo: Answer(f'{{"judge_rationale": "{echo}', finish="length")),
    "500 with a page": sending(lambda reply: f"<html>{reply}</html>", status=500),
    "a fence around nothing": replying(lambda reply, echo: f"```json\n{echo}\n```"),
    "a page in place of JSON": sending(lambda reply: f"<html>{reply}</html>"),
    "a thought": replying(lambda reply, echo: f"<think>{echo}</think>{json.dumps(reply)}"),
    "a list in place of an object": sending(lambda reply: json.dumps([reply])),
}
"""What a server may do with what it received. Those that fail and those that do not take turns: 16 failures in a row
would stop a run."""

STOPPING: dict[str, Faulty] = {str(status): refusing(status) for status in (401, 402, 403, 404)}


def spelling_of(request: Request, shift: int) -> Spell:
    """Another one each time that a fault comes up again: the numbers of faults and of spellings share no divisor."""
    return SPELLINGS[(number_of(request) + shift) % len(SPELLINGS)]


class Judging(dspy.Module):  # a judge of the user's own that holds a key
    def __init__(self, judge: dspy.Module, **attributes: Any) -> None:
        super().__init__()
        self.judge = judge
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, **inputs: Any) -> Any:
        return self.judge(**inputs)


def in_lm(**options: Any) -> Callable[[str], dict[str, Any]]:
    """Options of an LM, with the canary in the place of `{}`."""

    def fill(value: Any, canary: str) -> Any:
        if isinstance(value, str):
            return value.replace("{}", canary).replace("{quoted}", quote(canary, safe=""))
        if isinstance(value, dict):
            return {name: fill(inner, canary) for name, inner in value.items()}
        return value

    return lambda canary: fill(options, canary)


SLOTS = {name: in_lm(**options) for name, options in tables_of("hazards")["slots"].items()}


def looked_for(canary: str) -> Iterator[str]:
    """The spellings by which a canary is found, and its beginning, which a message that was cut could show."""
    data = canary.encode()
    yield canary[:16]
    yield from (canary, quote(canary, safe=""), data.hex(), canary.replace("/", r"\/"), html.escape(canary))
    for offset in range(3):
        code = base64.b64encode(bytes(offset) + data).decode()[4:-4]
        yield from (code, code.replace("+", "-").replace("/", "_"))


def leaks(canary: str, folder: Path, *outputs: str) -> list[str]:
    """Where a canary stands: files, or the number of what was printed."""
    texts = {str(path): path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file()}
    texts |= {str(number): text for number, text in enumerate(outputs)}
    spellings = [one.lower() for one in looked_for(canary)]
    return [name for name, text in texts.items() if any(one in text.lower() for one in spellings)]


def new_canary() -> str:
    """A key that was never seen before, with every sign that some spelling changes."""
    return f"sk-cAnary/{next(CANARIES):06x}+7d6c=&'5b4a"


def selector_with(server: LMServer, extra: Mapping[str, Any]) -> Selector:
    address = server.address.removeprefix("http://").removesuffix("/v1")
    inputs = {"api_base": server.address, "api_key": "key", "cache": False, "num_retries": 0, **extra}
    inputs["api_base"] = inputs["api_base"].replace("ADDRESS", address)
    selector = Selector()
    selector.set_lm(dspy.LM("openai/gpt-4o-mini", **inputs))
    return selector


def plan_of(folder: Path, rows: int, **options: Any) -> Plan:
    pool = write_pool(folder / "p.jsonl", map(row, range(rows)))
    return Plan([pool], folder / "run", ("majority", "judge", "eldgr"), max_failures="100%", **options)


def said_by(call: Callable[[], Any]) -> str:
    """The error that a call ends with, if any, and what it holds."""
    try:
        call()
    except (EldgrError, dspy.LMError) as error:
        return f"{error} {error.args!r}"
    return ""


def all_that_is_made_of(capsys: pytest.CaptureFixture[str]) -> str:
    """Make every other form of the finished run, and return what was printed."""
    for more in (["report", "run"], ["report", "run", "--format", "html"], ["decide", "run", "--rules", "eldgr"]):
        main(more)
    main(["report", "run", "--format", "markdown", "--out", "report.md"])
    main(["export", "run", "--out", "decisions.csv"])
    output = capsys.readouterr()
    return output.out + output.err


@pytest.mark.slow
@pytest.mark.parametrize("slot", SLOTS)
def test_no_server_leaks_a_key(slot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # hazard 101
    """Each fault is met in one spelling, another one for each slot; a key is met in all of them."""
    canary, shift, rounds = new_canary(), [*SLOTS].index(slot), len(SPELLINGS) if slot == "api_key" else 1
    faults = [*FAULTS.values()]
    with serving(lambda one: faults[number_of(one) % len(faults)](one, spelling_of(one, shift))) as server:
        evaluate(selector_with(server, SLOTS[slot](canary)), plan_of(tmp_path, rounds * len(FAULTS), workers=8))
        assert {entry.role for entry in server.log} == {"judge", "repairer"}
    assert leaks(canary, tmp_path, capsys.readouterr().err) == []
    assert leaks(canary, tmp_path, all_that_is_made_of(capsys)) == []
    for number, (fault, answer) in enumerate(STOPPING.items()):
        folder = tmp_path / fault
        folder.mkdir()
        spell = SPELLINGS[(number + shift) % len(SPELLINGS)]
        with serving(lambda request: answer(request, spell)) as server:  # noqa: B023 -- called here
            error = said_by(lambda: evaluate(selector_with(server, SLOTS[slot](canary)), plan_of(folder, 1)))  # noqa: B023
        assert "The call can only fail again" in error and (slot != "api_key" or MASK in error)
        assert leaks(canary, folder, error, capsys.readouterr().err) == []


def test_the_server_does_send_back_what_it_received(tmp_path: Path) -> None:
    """Without this the test above could pass because no echo ever arrived."""
    canary, echoes = new_canary(), list[str]()

    def answer(request: Request) -> Answer:
        echoes.append(echo_of(request, spelling_of(request, 0)))
        return FAULTS["500"](request, spelling_of(request, 0))

    with serving(answer) as server:
        evaluate(selector_with(server, SLOTS["api_key"](canary)), plan_of(tmp_path, 7))
    assert all(any(one.lower() in text.lower() for text in echoes) for one in (canary, quote(canary, safe="")))
    reasons = [one.reason or "" for one in read_journal(Path("run/journal.jsonl"))]
    assert reasons and all(MASK in reason for reason in reasons)


@pytest.mark.parametrize("adapter", [dspy.JSONAdapter(), dspy.ChatAdapter()], ids=["json", "chat"])
@pytest.mark.parametrize(
    "fault", ["a rationale, an answer", "a preference, a passage", "prose", "the model that answered"]
)
def test_another_adapter_reads_no_credential_into_a_run_either(adapter: Any, fault: str, tmp_path: Path) -> None:
    canary = new_canary()
    with serving(lambda request: FAULTS[fault](request, str)) as server, dspy.context(adapter=adapter):
        error = said_by(lambda: evaluate(selector_with(server, SLOTS["api_key"](canary)), plan_of(tmp_path, 2)))
    assert leaks(canary, tmp_path, error) == []


@pytest.mark.parametrize("attribute", SECRETS)
def test_what_a_role_module_holds_is_neither_stated_nor_sent_back(attribute: str, tmp_path: Path) -> None:
    canary = new_canary()
    body = json.dumps({"error": {"message": canary}}).encode()
    with serving(lambda request: Answer(status=500, body=body)) as server:
        selector = selector_with(server, {})
        selector.judge = Judging(selector.judge, **{attribute: SECRETS[attribute](canary)})
        error = said_by(lambda: evaluate(selector, plan_of(tmp_path, 1)))
    assert leaks(canary, tmp_path, error) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HTTPS_PROXY", "SOME_PASSWD", "PROXY_AUTH", "HF_TOKEN"])
def test_no_credential_of_the_environment_is_written_or_shown(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = new_canary()
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv(name, f"http://me:{quote(canary, safe='')}@proxy.example" if name == "HTTPS_PROXY" else canary)
    pool = write_pool(tmp_path / "p.jsonl", map(row, range(3)))
    body = json.dumps({"error": {"message": f"{canary} and {base64.b64encode(f'me:{canary}'.encode()).decode()}"}})
    for status in (400, 401, 500):
        with serving(lambda request: Answer(status=status, body=body.encode())) as server:  # noqa: B023 -- used here
            command = ["evaluate", str(pool), "--lm", "openai/m", "--api-base", server.address, "--out", str(status)]
            main([*command, "--max-failures", "100%", "--timeout", "5"])
            main(["doctor", "--judge", "openai/m", "--api-base", server.address])
            main(["doctor", "--judge", "openai/m", "--api-base", server.address, "--json"])
    output = capsys.readouterr()
    assert leaks(canary, tmp_path, output.out, output.err) == []


def ollama_faults(server: OllamaServer) -> dict[str, Callable[[Any], Reply]]:
    """What an Ollama server may do with the key that it received."""

    def key() -> str:
        return server.log[-1][3]["authorization"].removeprefix("Bearer ")

    def refuse(status: int) -> Callable[[Any], Reply]:
        return lambda body: Reply(f"not with {key()}", status=status)

    verdict = {"judge_rationale": "seen", "assessments": [], "preferred": 0}
    return {
        **{str(status): refuse(status) for status in (400, 401, 403, 404, 429, 500)},
        "400 for the length": lambda body: Reply(f"context length {key()}", status=400),
        "the model that answered": lambda body: Reply(json.dumps(verdict), model=key()),
        "a rationale": lambda body: Reply(json.dumps({**verdict, "judge_rationale": key()})),
        "a preference": lambda body: Reply(json.dumps({**verdict, "preferred": key()})),
        "prose": lambda body: Reply(f"I was asked with {key()}"),
        "thoughts": lambda body: Reply(json.dumps(verdict), thinking=key()),
    }


@pytest.mark.slow
def test_no_key_of_ollama_is_written_or_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ollama_server() as server:
        for fault, behaviour in ollama_faults(server).items():
            canary, folder, selector = f"sk-cAnary-{next(CANARIES):06x}/+=", tmp_path / fault, Selector()
            folder.mkdir()
            monkeypatch.setenv("OLLAMA_API_KEY", canary)
            server.behaviour = behaviour
            selector.set_lm(ollama("deepseek-r1:7b", host=server.address, cache=False, num_retries=0))
            error = said_by(lambda: evaluate(selector, plan_of(folder, 2)))  # noqa: B023 -- called here
            main(["doctor", "--api-base", server.address])
            main(["doctor", "--api-base", server.address, "--json"])
            output = capsys.readouterr()
            assert f"Bearer {canary}" in {headers.get("authorization") for _, _, _, headers in server.log}
            assert leaks(canary, tmp_path, error, output.out, output.err) == []


def test_an_error_of_ollama_has_no_key_for_a_program_either(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = f"sk-cAnary-{next(CANARIES):06x}/+="
    monkeypatch.setenv("OLLAMA_API_KEY", canary)
    with ollama_server(lambda body: Reply(f"not with {canary}", status=401)) as server:
        lm = ollama("deepseek-r1:7b", host=server.address, cache=False, num_retries=0)
        assert MASK in (message := said_by(lambda: lm("Good day.")))
    assert leaks(canary, Path(), message) == []


@pytest.mark.parametrize("address", ["h h?code={}", "ftp://h?key={}", "me:{}@h", "http://me:{}@h x"])
def test_a_refused_address_hides_its_secrets(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = write_pool(tmp_path / "p.jsonl", [row(0)])
    for lm in ("openai/m", "ollama/m"):
        canary = f"cAnary{next(CANARIES):08x}"
        assert main(["evaluate", str(pool), "--lm", lm, "--api-base", address.replace("{}", canary)]) != 0
        output = capsys.readouterr()
        assert leaks(canary, tmp_path, output.out, output.err) == []


def test_a_run_resumes_with_another_key_and_asks_nothing_twice(tmp_path: Path) -> None:
    plan, cures = plan_of(tmp_path, 4), list[bool]()
    with serving(lambda request: obliging(request) if cures else FAULTS["500"](request, str)) as server:
        evaluate(selector_with(server, SLOTS["the header X-Auth"](new_canary())), plan)
        cures.append(True)
        evaluate(selector_with(server, SLOTS["the header X-Auth"](new_canary())), plan)
        keys = [one.key for one in read_journal(tmp_path / "run" / "journal.jsonl") if one.settled]
        requests_before = len(server.log)
        evaluate(selector_with(server, SLOTS["the header X-Auth"](new_canary())), plan)
        assert len(server.log) == requests_before
    assert len(keys) == len(set(keys)) > 0


def test_a_run_that_was_recorded_with_a_key_is_replayed_without(tmp_path: Path) -> None:
    """As a version wrote it that did not redact."""
    canary = new_canary()
    line = {"kind": "consultation", "pool": "p", "id": "q0", "role": "judge", "outcome": "ok", "served": canary}
    content = {"judge_rationale": canary, "assessments": [], "preferred": 2}
    recording = tmp_path / "recording.jsonl"
    recording.write_text(json.dumps({**line, "content": content}) + "\n", encoding="utf-8")
    folder = tmp_path / "made"
    folder.mkdir()
    remember(canary)
    plan = plan_of(folder, 1, replay=recording)
    for _ in range(2):
        evaluate(Selector(), Plan(plan.pools, plan.out, ("majority", "judge"), replay=recording))
    assert leaks(canary, folder) == []


def test_the_journal_has_honest_replies_word_for_word(tmp_path: Path) -> None:
    """What servers that want no key are given in its place may be a word of a reply."""
    words = "The password is not-needed; anything goes: EMPTY, none, x, key, 12345678901, xxxxxxxxxxxx."
    verdict = {"judge_rationale": words, "assessments": [], "preferred": 2}
    for number, key in enumerate(words.replace(";", " ").replace(",", " ").replace(".", " ").split()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serving(lambda request: Answer(json.dumps(verdict))) as server:
            if len(key) < LEAST or key in ("password", "not-needed", "anything") or len(set(key)) == 1 or key.isdigit():
                plan = plan_of(folder, 1)
                evaluate(selector_with(server, {"api_key": key}), Plan(plan.pools, plan.out, ("judge",)))
                (one,) = read_journal(folder / "run" / "journal.jsonl")
                assert one.content == verdict


def test_the_least_credential_is_redacted_and_the_longest_other_value_is_not() -> None:
    short, long = f"q9{'z' * (LEAST - 3)}", f"q8{'z' * (LEAST - 2)}"
    remember(short)
    remember(long)
    assert redact(f"<{short}> <{long}>") == f"<{short}> <{MASK}>"
    digits = "918273645091827"
    remember(digits[: LEAST_DIGITS - 1])
    assert redact(digits[: LEAST_DIGITS - 1]) == digits[: LEAST_DIGITS - 1]
    remember(digits[:LEAST_DIGITS])
    assert redact(digits[:LEAST_DIGITS]) == MASK


remember(KEY)


@given(st.text(max_size=40), st.text(max_size=40))
@example("a", "")
def test_a_credential_is_found_within_any_text_and_the_rest_stays(before: str, behind: str) -> None:
    around = before + behind
    if redact(around) == around and redact(before) == before and redact(behind) == behind:
        assert redact(f"{before} {KEY} {behind}") == f"{before} {MASK} {behind}"
        assert json.loads(redact(json.dumps([before, KEY, behind]))) == [before, MASK, behind]


@given(st.text(max_size=80))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    for clean in (redact, redact_message):
        assert clean(clean(f"{text}{KEY}")) == clean(f"{text}{KEY}")


@given(st.data())
def test_a_credential_is_found_when_some_of_its_characters_are_escaped(data: st.DataObject) -> None:
    """Each in a way of its own, as the second of two programs may escape what the first left."""
    key = "sk-cAnary/&+0=%1\"2'45"
    remember(key)
    text = "".join(data.draw(st.sampled_from(ESCAPES))(sign) for sign in key)
    assert redact(f"<{text}>") == f"<{MASK}>"
    assert redact_value({text: [text]}) == {MASK: [MASK]}


@given(st.integers(1, 20), st.sampled_from(["\n", "\r\n", "\\n", "\\r\\n"]))
def test_base64_in_lines_is_found(width: int, line_break: str) -> None:
    code = base64.b64encode(KEY.encode()).decode()
    lines = line_break.join(code[at : at + width] for at in range(0, len(code), width))
    assert MASK in redact(lines) and code[4:8] not in redact(lines)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_base64_of_a_longer_text_shows_nothing_of_a_credential(before: bytes, behind: bytes) -> None:
    code = base64.b64encode(before + KEY.encode() + behind).decode()
    assert MASK in redact(code)
    remains = redact(code).split(MASK)
    ends = [base64.b64decode(remains[0][: len(remains[0]) // 4 * 4]), remains[-1]]
    assert KEY.encode()[:3] not in ends[0][len(before) :]


@each_case("hazards", "hidden credentials")
def test_what_follows_the_name_of_a_credential_is_hidden_too(message: str, text: str) -> None:
    assert redact_message(message) == text


@each_case("hazards", "long texts")
def test_a_long_text_is_looked_through_in_a_time_that_grows_with_its_length(text: str) -> None:
    assert redact_message(text) == text


def test_a_key_behind_many_backslashes_is_found_in_a_time_that_grows_with_the_text() -> None:
    key = new_canary()
    remember(key)
    for text in ("\\" * 200_000 + "z" + key, ("\\" * 2_000 + key[0]) * 100 + key, "\\" * 200_000 + key):
        assert key not in redact(text)
