"""Marks around an answer that are not part of it, for the law that spelling does not decide.

    decorated("Doha", "**{}**")    "**Doha**"

`eldgr_dspy.stripping.strip_answer` takes each of them off, except where a mark changes the answer, as a full stop does
"U.S". This module uses only the standard library. Source: ours.
"""

from collections.abc import Iterator

from eldgr_dspy.stripping import strip_answer

DECORATIONS = (
    "{}.",
    "{}!",
    "{}…",
    "{}。",
    "{},",
    "**{}**",
    "_{}_",
    "`{}`",
    "# {}",
    '"{}"',
    "'{}'",
    "“{}”",
    "«{}»",
    "「{}」",
    "({})",
    "[{}]",
    "<b>{}</b>",
    "<answer>{}</answer>",
    "\\boxed{{}}",
    "$\\text{{}}$",
    "  {} \n",
    "\u200b{}\ufeff",
    "**“{}.”**",
    '“"{}"”',
)
"""The answer replaces `{}`."""

_LONG = 3


def decorated(answer: str | None, decoration: str) -> str | None:
    """Return an answer in a decoration; unchanged if it would not be stripped to the same answer."""
    if answer is None:
        return None
    spelled = decoration.replace("{}", answer, 1)
    return spelled if strip_answer(spelled) == strip_answer(answer) else answer


def respellings(answers: tuple[str | None, ...]) -> Iterator[tuple[str | None, ...]]:
    """Yield the answers of a pool in other spellings: all in one decoration, then each in another one.

    Long ones also become a heading, which has one word more.
    """
    size, shift = len(DECORATIONS), sum(len(answer or "") for answer in answers)
    yield tuple(decorated(answer, DECORATIONS[0]) for answer in answers)
    yield tuple(decorated(answer, DECORATIONS[shift % size]) for answer in answers)
    yield tuple(decorated(answer, DECORATIONS[(shift + 7 * place) % size]) for place, answer in enumerate(answers))
    if any(len((answer or "").split()) >= _LONG for answer in answers):
        yield tuple(decorated(answer, "# {}") for answer in answers)
