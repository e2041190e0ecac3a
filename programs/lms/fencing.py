"""Fence the material for an LM so that no text in it can pass for an instruction, a field or another text.

Each text is between two marker lines. The marker is derived from the hash of all fenced texts, so the same material
gives the same prompt (caches, journals and golden prompts stay stable) and nobody can write a text that contains the
marker of its own fence, or half of it. Anything that software on the way to the LM would remove from the text is
defused: DSPy's own markers, and anything in the form of a model's token. A fence does not stop an LM that follows what
it reads. The certificates bound the effect of that. Standard library alone.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

_LETTERS = "bcdfghjklmnpqrstvwxz"
_LENGTH, _LONGEST = 8, 32  # 256 bits are 59 letters
_APART = "/"  # no letter, and not read as nothing

# Blank to a reader: white space and invisible characters.
_INVISIBLE = r"\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_BLANK = rf"[\s{_INVISIBLE}]*+"
_HASHES = rf"(?:#{_BLANK}){{2,}}+"
# What follows the first bracket of each marker, all possessive or bounded, so linear in the length of the text.
# `[[ ## name ## ]]`, DSPy's field marker, however it is spaced; a single name in brackets with two capitals in a row,
# an underscore or a number, and one between bars: `[/INST]`, `[TOOL_RESULTS]`, `[gMASK]`, `[img-12]`, `[|user|]`.
_SQUARE = (
    rf"{_BLANK}\[{_BLANK}{_HASHES}\w++{_BLANK}{_HASHES}\]{_BLANK}\]|\|\w{{1,64}}+\|\]"
    r"|/?(?=[^\W\d][\w-]{1,64}+\])[\w-]*(?:[A-Z]{2}|_|\d\])"
)
# A single name in angle brackets, with or without a value; and anything between bars without white space. Most tokens
# of models are written so, and of older software (`<|im_end|>`, `<｜User｜>`, `<turn|>`, `</s>`, `<tool_call>`,
# `<function=f>`, `<<SYS>>`), and what DSPy would replace with an image, a file or further text. It is a rule because no
# list of tokens is complete. A model with tokens of another form needs a server that escapes them.
_ANGLE = r"/?[\w.:-]{1,64}+/?>|[^\W\d][\w.:-]{0,64}+=[\w.:-]{1,64}+>|[|｜][^<>\s]{0,64}+>|[^<>\s|｜]{1,64}+[|｜]>"
_MARKER = re.compile(rf"\[·*+(?={_SQUARE})|<·*+(?={_ANGLE})")
_DEFUSAL = re.compile(rf"(?<=\[)·(?=·*+(?:{_SQUARE}))|(?<=<)·(?=·*+(?:{_ANGLE}))")
_INVISIBLES = re.compile(f"[{_INVISIBLE}]+")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ASCII_LETTERS = {code: None if chr(code).isspace() else chr(code).lower() for code in range(128)}


@dataclass(frozen=True, slots=True)
class Fences:
    """The given material, each text between its marker lines; `marker` is their letters."""

    question: str
    evidence: list[str]
    candidates: list[str]
    marker: str
    others: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])


def fence(
    question: str, evidence: Sequence[str] = (), candidates: Sequence[str] = (), **others: Sequence[str]
) -> Fences:
    """Return the material of one request, cleaned and fenced.

    A fenced text reads `<label marker>`, the text, `</label marker>`, each on lines of its own, where the label is
    `question`, or `passage` or `candidate` with its number counted from 0. Further texts are given by their label, such
    as `slice=[text]`, and are numbered in the same way. Only two things in the text are changed:
    what software would read as a marker (see `defuse`), and each lone surrogate, which no request can carry and which
    becomes U+FFFD. Every other span of a text is unchanged.
    """
    query, passages, pool = _clean(question), list(map(_clean, evidence)), list(map(_clean, candidates))
    further = {label: [_clean(text) for text in texts] for label, texts in others.items()}
    marker = derive_marker([[query], passages, pool, *further.values()])
    return Fences(
        _between(f"question {marker}", query),
        _number("passage", passages, marker),
        _number("candidate", pool, marker),
        marker,
        {label: _number(label, texts, marker) for label, texts in further.items()},
    )


def fence_fields(fields: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
    """Return the fields of a request, each text fenced: `question`, `evidence`, and `candidates` or one `candidate`.

    A further field is a text, which is labelled by its name, or texts, each labelled by its name without the s.
    """
    pool = [fields["candidate"]] if "candidate" in fields else fields.get("candidates", ())
    others = {name: fields[name] for name in fields if name not in ("question", "evidence", "candidates", "candidate")}
    labels = {name: name if isinstance(texts, str) else name.removesuffix("s") for name, texts in others.items()}
    further = {labels[name]: [texts] if isinstance(texts, str) else texts for name, texts in others.items()}
    fences = fence(cast(str, fields["question"]), fields.get("evidence", ()), cast(Sequence[str], pool), **further)
    whole: dict[str, Any] = {"question": fences.question, "evidence": fences.evidence, "candidates": fences.candidates}
    whole |= {"candidate": fences.candidates[0]} if "candidate" in fields else {}
    for name, texts in others.items():
        whole[name] = fences.others[name][0] if isinstance(texts, str) else fences.others[labels[name]]
    return {name: whole[name] for name in fields}


def derive_marker(groups: Sequence[Sequence[str]], length: int = _LENGTH) -> str:
    """Return at least `length` consonants, taken from a SHA-256 of the texts, no half of which occurs in any of them.

    The lengths of groups and texts are hashed with them, so that two different inputs are never hashed as the same
    bytes. If half of the letters in a row occurs in a text, in either case, full width or spaced, the hash is extended
    until it does not, each time for two letters more: no text is long enough to hold every half. So no text contains
    its own marker, however long an attacker searches for one.
    """
    sha = hashlib.sha256()
    for texts in groups:
        sha.update(len(texts).to_bytes(8))
        for text in texts:
            data = text.encode()
            sha.update(len(data).to_bytes(8) + data)
    letters = _as_letters(_APART.join(text for texts in groups for text in texts))
    marker = _marker(sha.digest(), length)
    while any(half in letters for half in _halves(marker)):
        sha.update(b"another")
        marker = _marker(sha.digest(), min(len(marker) + 2, _LONGEST))
    return marker


def _marker(digest: bytes, length: int) -> str:
    number, letters = int.from_bytes(digest), list[str]()
    for _ in range(length):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters)


def defuse(text: str) -> str:
    """Return the text with a `·` after the first bracket of each marker: `[·[ ## name ## ]]`, `<·|im_end|>`.

    Markers are DSPy's for fields, however spaced, including with invisible characters, and anything in the form of a
    model's token: a single name in angle brackets, or one in square brackets with two capitals in a row, an underscore
    or a number at its end. A marker that already has dots gets one more, so that `restore` undoes this for every text.
    """
    # A function, since `sub` would look up a template even where it finds no marker.
    return _MARKER.sub(lambda match: f"{match[0]}·", text) if "[" in text or "<" in text else text


def restore(text: str) -> str:
    """Undo `defuse`: a span that an LM copied from defused text becomes the span of the original."""
    return _DEFUSAL.sub("", text)


def _as_letters(text: str) -> str:
    """Return the text with letters of either case, full width or spaced written as in the marker."""
    if text.isascii():
        return text.translate(_ASCII_LETTERS)
    return "".join(_INVISIBLES.sub("", unicodedata.normalize("NFKC", text)).split()).casefold()


def _halves(marker: str) -> list[str]:
    half = (len(marker) + 1) // 2
    return [marker[start : start + half] for start in range(len(marker) - half + 1)]


def _clean(text: str) -> str:
    """Return the text defused and fit to be sent as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _LONE_SURROGATE.sub("\ufffd", text)
    return defuse(text)


def _number(label: str, texts: Sequence[str], marker: str) -> list[str]:
    return [_between(f"{label} {number} {marker}", text) for number, text in enumerate(texts)]


def _between(label: str, text: str) -> str:
    return f"<{label}>\n{text}\n</{label}>"
