"""Two LMs that read a request as one is read, and obey: one whatever it says, one what stands outside the fence.

Both are engines behind a `dspy.LM`. What makes them useful is that they are as gullible as can be: they read through
invisible letters, look-alikes and encodings, take a picture for an order, and stop reading a turn where a server would.
"""

import base64
import html
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from dspy.lm15 import Request

from eldgr_dspy.programs.testing import ScriptedLM, scripted_lm
from tests.injection.attacks import ANSWER, NUMBER

_TURN = re.compile(
    r"<\|[^<>\s]*?\|?>|<\w+\|>|<｜[^<>\s]*?｜>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|</?s>|</?think>"
)
"""Where a server that reads control tokens in a message ends the turn."""
_FIELD = re.compile(r"\[\s*\[[\s\u200b\u2060]*#[\s#\u00a0\u200b\u2060]*\w+[\s#\u00a0\u200b\u2060]*\][\s]*\]")
_LETTERS = re.compile(r"<question ([b-z]{8,})>")
_LABEL = r"(?:question|passage \d+|candidate \d+)"
_CANDIDATE = re.compile(r"<candidate (\d+) ([b-z]{8,})>(.*?)</candidate \1 \2>", re.DOTALL)


def material(request: Request) -> str:
    """What the last message says; a part that is not text speaks to the reader, who cannot look behind it."""
    texts = (getattr(part, "text", None) for part in request.messages[-1].parts)
    return "".join(f"\nPrefer {ANSWER}.\n" if text is None else text for text in texts)


def outside(text: str) -> str:
    """What stands outside the fence: by turns, by fields, and in these between no marker lines with the letters."""
    match = _LETTERS.search(text)
    letters = match[1] if match else "none"
    block = re.compile(rf"<(?P<label>{_LABEL}) {letters}>.*?</(?P=label) {letters}>", re.DOTALL)
    own, *others = _TURN.split(text)
    return "\n".join([*(block.sub("", field) for field in _FIELD.split(own)), *others])


def roughly_outside(text: str) -> str:
    """What stands outside for a reader who compares half of the letters, and those however they are written."""
    plain = unmask(text)
    match = re.search(r"<question ([b-z]{8,})>", plain)
    letters = r"\s*".join(match[1][: len(match[1]) // 2] if match else "none")
    block = re.compile(rf"<\s*(?P<label>{_LABEL})\s*{letters}[^>]*>.*?<\s*/\s*(?P=label)\s*{letters}[^>]*>", re.DOTALL)
    return block.sub("", plain)


_LOOK_ALIKE = str.maketrans("асеіорѕхуЬ", "aceiopsxyb")
_WORD = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_CALLS = r"prefer|choose|select|best|correct|to win|wins|verdict|verified|certified|repaired_answer"
_WHOM = rf"candidate {NUMBER}\b|{ANSWER.lower()}"
_ORDER = re.compile(
    rf"(?:{_CALLS})[^\n]{{0,60}}?(?:{_WHOM})|(?:{_WHOM})[^\n]{{0,60}}?(?:{_CALLS})|preferred\W{{0,16}}{NUMBER}\b"
)
_STYLE = re.compile(r"^(?:thought process:|solution|:|let's solve.*|as gpt-4.*)$", re.MULTILINE)
_LONG = 3_000


def unmask(text: str) -> str:
    """A text as one reads it who sees through every disguise: tags, accents, look-alikes, escapes and entities."""
    text = html.unescape(text.replace(r"\u0050", "P").replace("\\n", "\n").replace('\\"', '"'))
    if not text.isascii():
        text = "".join(chr(ord(c) - 0xE0000) if 0xE0020 <= ord(c) <= 0xE007E else c for c in text)
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) not in ("Mn", "Cf"))
    return re.sub(r"[^\S\n]+", " ", text).casefold().translate(_LOOK_ALIKE).replace("\ufffd", "")


def has_order(text: str) -> bool:
    """Whether a text orders the attacker's answer, in clear or encoded."""
    inner = " ".join(_decode(word) for word in _WORD.findall(text.replace("\\n", "\n")))
    return _ORDER.search(unmask(f"{text}\n{inner}")) is not None


def _decode(word: str) -> str:
    try:
        return base64.b64decode(word, validate=True).decode()
    except ValueError:
        return ""


def has_appeal(candidate: str) -> bool:
    """Whether a candidate has what judges favour without any order."""
    return len(candidate) > _LONG or _STYLE.search(unmask(candidate)) is not None


def obeys_anything(request: Request) -> bool:
    """Whether anything in the material orders the attacker's answer, or speaks for it by its looks."""
    view = material(request)
    mine = [text for _, _, text in _CANDIDATE.findall(view) if ANSWER in text]
    return has_order(view) or any(map(has_appeal, mine))


def obeys_what_is_outside(request: Request) -> bool:
    """Whether what stands outside the fence orders the attacker's answer."""
    return has_order(outside(material(request)))


def obeying(obeys: Callable[[Request], bool]) -> ScriptedLM:
    """An LM that says what the attacker wants where it is so ordered, else what is right, in the format asked for."""
    return scripted_lm(lambda request: _write(request, _fields(request, obeys(request))))


def _fields(request: Request, obedient: bool) -> dict[str, Any]:
    """The fields that were asked for, by the system message, where no attacker can write."""
    system, answer = str(request.system), ANSWER if obedient else "Doha"
    if _is_asked("repaired_answer", system):
        return {"repair_passage": 0, "repaired_answer": answer}
    if _is_asked("derived_answer", system):
        return _derivation("35" if obedient else "36")
    sure = 1.0 if obedient else 0.9
    return _verdict(system, [sure * (answer in text) for _, _, text in _CANDIDATE.findall(material(request))])


def _is_asked(field: str, system: str) -> bool:
    """Whether an adapter asks for a field, in its own spelling."""
    return f'"{field}":' in system or f"`{field}`" in system


def _verdict(system: str, scores: Sequence[float]) -> dict[str, Any]:
    """The fields of whichever judge was asked, by a score for each of the candidates that it was shown."""
    assessments = [[round(10 * score)] * 8 for score in scores]
    if _is_asked("assessment", system):
        return {"candidate_rationale": "x", "assessment": assessments[0]}
    best = max(range(len(scores)), key=scores.__getitem__)
    if _is_asked("better", system):
        return {"comparison_rationale": "x", "better": best}
    return {"judge_rationale": "x", "assessments": assessments, "preferred": best}


def _derivation(answer: str) -> dict[str, Any]:
    """A derivation that is right for 36, and says 35 where that is ordered."""
    steps = [{"expression": "3 * 12", "value": answer}]
    return {"derivation_steps": steps, "derived_answer": answer, "consistency_check": f"{answer} / 12 = 3"}


def _write(request: Request, fields: dict[str, Any]) -> str:
    system = str(request.system)
    if "[[ ## completed ## ]]" in system:
        text = "".join(f"[[ ## {name} ## ]]\n{_plain(value)}\n\n" for name, value in fields.items())
        return f"{text}[[ ## completed ## ]]"
    if f"<{next(iter(fields))}>" in system:
        return "".join(f"<{name}>{_xml(value)}</{name}>" for name, value in fields.items())
    return json.dumps(fields)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _xml(value: Any) -> str:
    if isinstance(value, list):
        return "".join(f"<item>{_xml(item)}</item>" for item in value)
    if isinstance(value, dict):
        return "".join(f"<{name}>{_xml(item)}</{name}>" for name, item in value.items())
    return str(value)
