r"""Mathematics in LaTeX: find a formula in a text, read an answer as an expression, and say if it could take long."""

import re
from itertools import islice
from typing import Final

from eldgr_dspy.text.folding import PLAIN, drop_invisible

LENGTH: Final = 500  # characters of a text that is compared
DEPTH: Final = 8  # of nested brackets

_INLINE: Final = re.compile(
    r"\$\$?([^$]++)\$\$?(?![\d$])|\\\(((?>(?:[^\\]|\\[^()])+))\\\)|\\\[((?>(?:[^\\]|\\[^\[\]])+))\\\]"
)
_LATEX: Final = r"\cdot \cdot \cap \infty ^2 ^3 \frac{1}{2} ^\circ".split()
_SIGNS: Final = PLAIN | {ord(sign): f"{latex} " for sign, latex in zip("·⋅∩∞²³½°", _LATEX, strict=True)}
_DELIMITER: Final = re.compile(r"\\?\$|(?<!\\)\\[()\[\]]")
# What is written in plain text and `math-verify` reads otherwise or not at all, and how LaTeX has it.
_PLAIN: Final = (
    (re.compile(r"^(?:[=≈~]|\\approx|\\sim(?![a-z]))\s*"), ""),
    (
        re.compile(
            r"\\(?:bm|boldsymbol|mathbf|mathrm|mbox|textbf|underline)\s*(?=\{\s*(?:[-+.]?\d|-?\\(?:frac|sqrt)))"
        ),
        "",
    ),
    (re.compile(r"∅|\\varnothing(?![a-z])"), r"\\emptyset "),
    (re.compile(r"(?:\*\*|\^)\s*(-?\d+|\w+)"), r"^{\1}"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"√\s*(\w+)"), r"\\sqrt{\1}"),
    (re.compile(r"√"), "sqrt"),
    (re.compile(r"π|(?<![\\A-Za-z])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"(?<![\\A-Za-z])(?:oo|inf(?:inity)?)(?![A-Za-z])", re.I), r"\\infty "),
    (re.compile(r"\^\s*(?:\{\s*\\prime\s*\}|\\prime)"), "'"),
)
_WORD: Final = re.compile(r"(?<![\\\w])[^\W\d_]{3,}")
_FUNCTIONS: Final = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log exp sqrt frac min max gcd lcm mod and abs"
    " matrix pmatrix bmatrix vmatrix cases array".split()
)
# What could take long to compare, by what it looks like.
_REFUSALS: Final = {
    "it has a character that is not printed": re.compile(r"[^\x20-\U0010ffff]|[\x7f-\x9f\ud800-\udfff]"),
    "it has a power of a power, or an exponent of five digits or more": re.compile(
        r"\^\s*\{[^{}]*(?:\d\s*|\}\s*)\^ | \^[\s{(+-]*\d{5} | \d[eE][+-]?\d{4}", re.X
    ),
    "it has a power of three digits of a bracket": re.compile(r"[)\]}]\s*\^[\s{(+-]*\d{3}"),
    "it has a large factorial or binomial, or a factorial of a factorial": re.compile(
        r"\d{5}\s*!|![\s)}\]]*!|(?:binom|choose)(?s:.*)\d{5}|\d{5}(?s:.*)\\choose|\\?Gamma\b"
    ),
    "it has a sum, a product, an integral or a limit": re.compile(r"\\(?:sum|prod|i*int|oint|lim)(?![a-z])"),
    "it has more than eight bars or unions": re.compile(r"(?:(?>.*?(?:[|∪]|\\[lr]?vert|\\c[ua]p))){9}"),
}
_BRACKET: Final = re.compile(r"(\^\s*)?([({\[])|[)}\]]|\\[lr]?[({\[)}\]]")  # with the exponent that it opens


def formula_in(text: str) -> str | None:
    """Return what is between dollar signs or LaTeX's brackets, if a text has exactly one such formula."""
    formulas = [*islice(_INLINE.finditer(text), 2)]
    return next(filter(None, formulas[0].groups())).strip() if len(formulas) == 1 else None


def formula_at_end(text: str) -> str | None:
    """Return the one formula of the last line, or the one on the last lines of its own, if no digit follows it."""
    above, _, end = text.strip().rpartition("\n")
    if opener := {"$$": "$$", r"\]": r"\["}.get(end):
        end = f"{above[above.rfind(opener) :]}\n{end}"
    formulas = [*_INLINE.finditer(end)]
    return formula_in(end) if formulas and not re.search(r"\d", end[formulas[-1].end() :]) else None


def as_expression(answer: str) -> str:
    """Return an answer as LaTeX, without delimiters and the marks around it."""
    text = _DELIMITER.sub("", drop_invisible(answer).translate(_SIGNS))
    text = " ".join(text.split()).lstrip(" *_`").rstrip(" *_`.,;:\\")
    for plain, latex in _PLAIN:
        text = plain.sub(latex, text)
    return text.strip()


def is_prose(expression: str) -> bool:
    """Whether a text is words: as LaTeX it would be a product of letters, in which "no" is "on"."""
    words = [word for word in islice(_WORD.finditer(expression), 100) if word[0].lower() not in _FUNCTIONS]
    if any(map(str.isdigit, expression)):
        return len(words) > 3
    return bool(words) or expression.lower() in ("no", "")


def fault(expression: str) -> str | None:
    """Return why an expression is not compared, or None: it could take long, by what its text looks like."""
    if len(expression) > LENGTH:
        return f"it is longer than {LENGTH} characters"
    for why, pattern in _REFUSALS.items():
        if pattern.search(expression):
            return why
    powers: list[bool] = []
    braces = 0
    for bracket in _BRACKET.finditer(expression):
        if bracket[2]:
            powers.append(bracket[1] is not None)
        elif bracket[0] in ")}]" and powers:
            powers.pop()
        braces += (bracket[2] == "{") - (bracket[0] == "}")
        if len(powers) > DEPTH or sum(powers) > 2:
            return f"brackets nest deeper than {DEPTH}, or exponents deeper than 2"
        if braces < 0:
            break
    return "its braces do not match" if braces else None
