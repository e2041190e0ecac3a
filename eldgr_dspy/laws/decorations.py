"""What may stand around an answer without being part of it: one spelling after another for the law that none decides.

    decorated("Doha", "**{}**")    "**Doha**"

Each is taken off by `eldgr_dspy.stripping.strip_answer`, but from an answer that it changes, as a full stop does "U.S".
Standard library alone. Source: ours.
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
)
"""Where `{}` stands, the answer does."""

_LONG = 3


def decorated(answer: str | None, decoration: str) -> str | None:
    """Return an answer in a decoration; as it is where it would not be stripped to the same answer."""
    if answer is None:
        return None
    spelled = decoration.replace("{}", answer, 1)
    return spelled if strip_answer(spelled) == strip_answer(answer) else answer


def respellings(answers: tuple[str | None, ...]) -> Iterator[tuple[str | None, ...]]:
    """Yield the answers of a pool in other spellings: all in one decoration, then each in another one.

    Long ones become a heading too, which is of one word more.
    """
    size, shift = len(DECORATIONS), sum(len(answer or "") for answer in answers)
    yield tuple(decorated(answer, DECORATIONS[0]) for answer in answers)
    yield tuple(decorated(answer, DECORATIONS[shift % size]) for answer in answers)
    yield tuple(decorated(answer, DECORATIONS[(shift + 7 * place) % size]) for place, answer in enumerate(answers))
    if any(len((answer or "").split()) >= _LONG for answer in answers):
        yield tuple(decorated(answer, "# {}") for answer in answers)
