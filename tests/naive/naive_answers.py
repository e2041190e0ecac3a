"""When two answers vote together, the obvious way: one character at a time, by what the documentation says.

It shares nothing with the package. A key is compared with keys of this module alone.
"""

import re
import string
import unicodedata
from fractions import Fraction
from functools import cache

from tests.naive.naive_amounts import quantity, spelling
from tests.naive.naive_reading import BIDI, fold, invisible, join, respell, sentence_ends, strip

FRACTIONS = {
    character: Fraction(unicodedata.normalize("NFKC", character).replace("⁄", "/"))
    for character in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
FRACTIONS["↉"] = Fraction(0)
ARTICLES = ("a", "an", "the")
POLAR = ("yes", "no", "true", "false")

DIGITS = r"[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+"
DECIMAL = rf"(?:{DIGITS})(?:\.[0-9]+)?|\.[0-9]+"
MAGNITUDE = rf"""
    (?P<whole>[0-9]{{1,3}}) \s (?P<top>[0-9]{{1,3}}) / (?P<bottom>[0-9]{{1,3}})
  | (?P<over>{DIGITS}) \s? / \s? (?P<under>{DIGITS})
  | (?:(?P<before>[0-9]{{1,3}})\s?)?  (?P<vulgar>[{"".join(FRACTIONS)}])
  | (?P<decimal>{DECIMAL}) (?: [eE] (?P<exponent>[+-]?[0-9]{{1,3}}) )?
"""
CURRENCY = "[$£¥฿₠-\u20cf]"
NUMBER = re.compile(
    rf"""(?P<sign>[+-])? (?P<before_it>\\?{CURRENCY}\s?)? (?P<inner>[+-])?
    (?:{MAGNITUDE})
    (?P<behind_it>\s?\\?{CURRENCY})? (?P<percent>\s?\\?%|\s?(?i:per\s?cent))? \.?""",
    re.VERBOSE,
)


def plain(text: str) -> str:
    """Composed, without what cannot be seen, with ASCII digits and minus signs."""
    text = "".join(character for character in text if not invisible(character))
    text = unicodedata.normalize("NFC", text)
    out = ""
    for character in text:
        if unicodedata.category(character) == "Nd":
            out += str(unicodedata.digit(character))
        elif character == "−":
            out += "-"
        else:
            out += character
    return out


def number(text: str) -> tuple[Fraction, bool] | None:
    """The value of a text that is one number, and whether it is a percentage."""
    text = plain(text).strip()
    match = NUMBER.fullmatch(text)
    if match is None or len(text) > 1_000 or (match["sign"] and match["inner"]) or more_than_one_unit(match):
        return None
    value = magnitude(match)
    if value is None:
        return None
    return (-value if "-" in (match["sign"], match["inner"]) else value), bool(match["percent"])


def more_than_one_unit(result: re.Match[str]) -> bool:
    """Two different currency signs, or one and a percent sign; `$5$` is one sign, written as TeX writes it."""
    signs = {result[name].strip(" \\\t\n\u00a0") for name in ("before_it", "behind_it") if result[name] is not None}
    return len(signs) + bool(result["percent"]) > 1


def magnitude(result: re.Match[str]) -> Fraction | None:
    if result["vulgar"]:
        return int(result["before"] or 0) + FRACTIONS[result["vulgar"]]
    if result["whole"] or result["over"]:
        top, bottom = (
            result["top"] or result["over"].replace(",", ""),
            result["bottom"] or result["under"].replace(",", ""),
        )
        if int(bottom) == 0 or (result["whole"] and int(top) >= int(bottom)):
            return None
        return int((result["whole"] or "0").replace(",", "")) + Fraction(int(top), int(bottom))
    digits = result["decimal"].replace(",", "")
    return Fraction(("0" + digits).rstrip(".")) * Fraction(10) ** int(result["exponent"] or 0)


def is_polar(answer: str) -> bool:
    return class_of(answer, "retrieval") in POLAR


def read(answer: str, *, keep_case: bool = False) -> str:
    """An answer as it is compared: stripped, folded and respelled."""
    return respell(join(fold(strip(answer), keep_case=keep_case)))


def class_of(answer: str | None, task: str) -> object:
    """The class in which an answer votes, None where it does not."""
    inner = strip(answer or "")
    if not visible(inner):
        return None
    if task == "arithmetic" and (result := stated_number(inner)) is not None:
        return result
    if any(character in BIDI for character in inner):
        return inner if visible(inner) else None
    plain = read((answer or "").replace("٪", "%"))
    key = text_key(plain)
    symbols = re.sub(r"\\infty(?![a-z])|(?<![a-z])(infinity|inf|oo)(?![a-z])", "∞", plain)
    if visible(key) and task == "arithmetic" and is_expression(symbols):
        return f"expression {''.join(symbols.split())}"
    return short_key(key) if visible(key) and task == "retrieval" else key if visible(key) else None


def short_key(key: str) -> str:
    """The key of short text: that of the quantity that a key spells, in the spelling that the package shows."""
    result = quantity(key)
    return spelling(*result) if result else key


SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "k": 10**3, "lakh": 10**5, "million": 10**6, "mn": 10**6}
SCALES |= {"crore": 10**7, "billion": 10**9, "bn": 10**9, "trillion": 10**12, "tn": 10**12}


def stated_number(text: str) -> tuple[Fraction, bool] | None:
    """A number as it is, in LaTeX, or before a word or a letter that scales it."""
    result = number(text)
    if result is None:
        text = without_latex(plain(text).strip())
        result = number(text)
    if result is not None or len(text) > 1_000:
        return result
    text = text.removesuffix(".")
    for word, scale in {**SCALES, "m": 10**6, "b": 10**9, "t": 10**12}.items():
        before = re.fullmatch(rf"(.*?)([\s-]?){word}{'s?' * (len(word) > 1)}", text, re.I | re.DOTALL)
        if not before or (len(word) == 1 and (before[2] or not (word == "k" or re.match(rf"\W*{CURRENCY}", text)))):
            continue
        if (base := stated_number(before[1])) is not None and not base[1] and not before[1].endswith("."):
            return base[0] * scale, False
    return None


def without_latex(text: str) -> str:
    """The numbers of LaTeX as plain ones."""
    argument = r"(?:\{\s*(-?\d+)\s*\}|(\d))"
    text = re.sub(
        rf"(\d?)\\[dtc]?frac\s*{argument}\s*{argument.replace('-?', '')}",
        lambda m: f"{m[1]}{' ' * bool(m[1])}{m[2] or m[3]}/{m[4] or m[5]}",
        text,
    )
    text = re.sub(r"(?<=\d)(\{,\}|,\\!|\\[,!;: ])(?=\d{3}(?!\d))", ",", text)
    powers = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
    times = r"(?<=\d)\s?(?:\\times|\\cdot|[×x*])\s?10\s?"
    text = re.sub(times + r"([⁻⁺]?[⁰¹²³⁴-⁹]{1,3})(?!\d)", lambda m: f"e{m[1].translate(powers)}", text)
    power = r"\^\s?(?:\{\s?([-+]?\d{1,3})\s?\}|([-+]?\d{1,3}))(?!\d)"
    text = re.sub(times + power, lambda m: f"e{m[1] or m[2]}", text)
    text = re.sub(r"(?<![0-9A-Za-z\\.^*/×+}-])10\s?\^\s?(?:\{\s?([-+]?\d{1,3})\s?\}|(\d))(?![\d^])", r"1e\1\2", text)
    text = re.sub(r"(?<=\d)\s?(\^\s?(\{\s?\\circ\s?\}|\\circ(?![a-z]))|°)(?!\s?[A-Za-z])", "", text)
    return re.sub(r"\\(display|text)style(?![a-z])\s?", "", text)


def is_expression(text: str) -> bool:
    """Whether a text has a sign, an operator, a command or brackets of mathematics."""
    brackets = text[:1] in ("(", "[") and text[-1:] in (")", "]")
    minus = any(
        text[at] == "-"
        and at + 1 < len(text)
        and not (text[at + 1 : at + 4].isalpha() and len(text[at + 1 : at + 4]) == 3)
        for at in range(len(text))
    ) or re.search(r"-(sin|cos|tan|log|ln|exp|sqrt|pi)(?![a-z])", text)
    times = re.search(r"[\w)\]}]\s?\*\s?[\w(\[\\]|\w_[\w{]|(?<![^\W\d_])[a-z]'+(?!\w)|\\[a-z]", text)
    return bool(brackets or minus or times or set(text) & set("+/^=<>√∞"))


@cache
def text_key(text: str) -> str:
    """The key of an answer that has been read: without the marks that carry no meaning and the article at its head."""
    result = without_article(text)
    for start, end in reversed(sentence_ends(result)):
        result = result[:start] + "\ue000" + " " * result[start:end].endswith(" ") + result[end:]
    key = " ".join(unmark(result).split()).replace("\ue000", ".")
    return key if visible(key) else " ".join(text.split())


def without_article(text: str) -> str:
    """Without the article at the head, where a word follows and not articles alone: "A & W" and "The The" keep it."""
    head, _, rest = text.partition(" ")
    word = re.match(rf"[\"'(\[]{{0,3}}([^\W_]|([-+±~<>≤≥#.\\{CURRENCY[1:-1]}] ?){{1,3}}[0-9])", rest)
    others = [other for other in re.sub(r"\W+\Z", "", rest).lower().split(" ") if other not in ARTICLES]
    return rest if head.lower() in ARTICLES and word and others else text


def visible(text: str) -> bool:
    return any(not (c.isspace() or unicodedata.category(c) in ("Cc", "Cf")) for c in text)


def is_digit(character: str) -> bool:
    return (character != "" and character in "0123456789") or (
        character != "" and unicodedata.category(character) in ("No", "Nl")
    )


def unmark(text: str) -> str:
    """The text without the marks that carry no meaning."""
    text = without_thousands_commas(text)
    closing = closing_quotes(text)
    text = "".join(character for at, character in enumerate(text) if at not in closing)
    out = ""
    for at, character in enumerate(text):
        if character == "%" and keeps(text, at):
            out = out.rstrip() + character
        elif character not in string.punctuation or keeps(text, at):
            out += character
    return out


def without_thousands_commas(text: str) -> str:
    """1,000 is 1000; 0,500 and 1,00 and 1,000,00 stay as they are."""
    return re.sub(r"(?<![0-9.,])[1-9][0-9]{0,2}(,[0-9]{3})+(?![0-9])(?!,[0-9])", lambda m: m[0].replace(",", ""), text)


def closing_quotes(text: str) -> list[int]:
    """Places of quotes that close a quotation, from a quote before a word to the next such quote behind one."""
    closing: list[int] = []
    at = 0
    while at < len(text):
        if text[at] in "'\"" and not word_at(text, at - 1) and at + 1 < len(text) and not text[at + 1].isspace():
            end = next((e for e in range(at + 1, len(text)) if closes(text, at, e)), None)
            if end is not None and not word_follows(text, end + 1):
                closing.append(end)
                at = end
        at += 1
    return closing


def closes(text: str, start: int, at: int) -> bool:
    return text[at] == text[start] and not (text[at] == "'" and word_at(text, at - 1) and word_at(text, at + 1))


def word_follows(text: str, at: int) -> bool:
    """Whether a word begins at a place, or up to three marks before it."""
    return any(
        word_at(text, at + n) and not any(word_at(text, p) or text[p].isspace() for p in range(at, at + n))
        for n in range(4)
    )


def word_at(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")


def letter_or_digit_at(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isalnum()


def number_follows(text: str, at: int) -> bool:
    """Whether a number begins at a place, or up to three signs before it."""
    return any(
        at + n < len(text)
        and is_digit(text[at + n])
        and not any(word_at(text, p) or text[p].isspace() for p in range(at, at + n))
        for n in range(4)
    )


def amount_follows(text: str, at: int) -> bool:
    """Whether an amount begins at a place: up to three letters, a currency sign, a number."""
    match = re.match(rf"[A-Za-z]{{0,3}}\\?{CURRENCY}\s?\.?(?P<first>\w)", text[at:])
    return match is not None and is_digit(match["first"])


def keeps(text: str, at: int) -> bool:
    """Whether a mark carries a meaning, by the list of the documentation."""
    mark = text[at]
    start, end = at, at + 1
    while start and text[start - 1] in string.punctuation:
        start -= 1
    while end < len(text) and text[end] in string.punctuation:
        end += 1
    between = start > 0 and end < len(text) and is_digit(text[start - 1]) and is_digit(text[end])
    rules = {"-": minus, "+": plus, ".": point, "%": percent, "<": order, ">": order, "=": order}
    rules |= {"'": apostrophe, '"': behind_digit, "$": dollar, ";": beside_space}
    return between or rules.get(mark, never)(text, at) or graded_mark(text, at) or is_spaced(text, at)


def is_spaced(text: str, at: int) -> bool:
    """Whether a mark of arithmetic stands between digits, with a space on both sides."""
    around = text[max(0, at - 2) : at + 3]
    return (
        len(around) == 5
        and at > 1
        and is_digit(around[0])
        and is_digit(around[4])
        and (around[1].isspace() and around[2] in "-+*/" and around[3].isspace())
    )


def apostrophe(text: str, at: int) -> bool:
    """Feet and minutes, and what is contracted: "he'll" is not "hell"."""
    ending = re.match(r"(?:d|ll|m|re|ve)(?!\w)", text[at + 1 :], re.IGNORECASE)
    return behind_digit(text, at) or (ending is not None and text[at - 1 : at].isalpha())


def never(text: str, at: int) -> bool:
    return False


def beside_space(text: str, at: int) -> bool:
    return text[at + 1 : at + 2].isspace() or text[max(0, at - 1) : at].isspace()


def dollar(text: str, at: int) -> bool:
    """Whether a number, perhaps with a sign and a point, stands right behind a dollar sign, or right before it."""
    rest = text[at + 1 :]
    rest = (rest[1:] if rest.startswith(("-", "+")) else rest).removeprefix(".")
    return is_digit(rest[:1]) or (is_digit(text[at - 1 : at]) and not letter_or_digit_at(text, at + 1))


def run_start(text: str, at: int, marks: str) -> int:
    while at and text[at - 1] in marks:
        at -= 1
    return at


def run_end(text: str, at: int, marks: str) -> int:
    while at < len(text) and text[at] in marks:
        at += 1
    return at


def minus(text: str, at: int) -> bool:
    start, end = run_start(text, at, "-"), run_end(text, at, "-")
    if start == 0 and opening(text[end:]):
        return True
    if exponent(text, at):
        return True
    return not letter_or_digit_at(text, start - 1) and (number_follows(text, end) or amount_follows(text, end))


def exponent(text: str, at: int) -> bool:
    """Whether a sign stands between the e and the digits of an exponent."""
    return at > 1 and text[at - 1] in "eE" and is_digit(text[at - 2]) and at + 1 < len(text) and is_digit(text[at + 1])


def opening(rest: str) -> bool:
    """Whether a minus that opens the text is a sign: before a number, in a word with a digit, before a lone symbol."""
    if number_follows(rest.lstrip(), 0):
        return True
    if not rest or rest[0].isspace():
        return False
    return any(map(is_digit, rest.split()[0])) or not (len(rest) > 1 and rest[0].isalpha() and rest[1].isalpha())


def plus(text: str, at: int) -> bool:
    return exponent(text, at) or behind_digit(text, at)


def behind_digit(text: str, at: int) -> bool:
    start, end = run_start(text, at, "'\"+"), run_end(text, at, "'\"+")
    return start > 0 and is_digit(text[start - 1]) and not letter_or_digit_at(text, end)


def point(text: str, at: int) -> bool:
    before = at - 1
    return (
        at + 1 < len(text)
        and is_digit(text[at + 1])
        and not letter_or_digit_at(text, before)
        and not (at and text[before] == ".")
    )


def order(text: str, at: int) -> bool:
    if text[at] == "=" and (at == 0 or text[at - 1] not in "<>"):
        return False
    end = run_end(text, run_start(text, at, "<>") if text[at] in "<>" else at, "<>")
    end += text[end : end + 1] == "="
    end = max(end, at + 1)
    return end > at and number_follows(text[end:].lstrip(), 0)


def percent(text: str, at: int) -> bool:
    before = text[:at].removesuffix("\\").rstrip().removesuffix(".")
    touching = next((p for p in range(at + 1, len(text)) if word_at(text, p) or text[p].isspace()), len(text))
    return bool(before) and is_digit(before[-1]) and not word_at(text, touching)


def short_word_ends(text: str, at: int) -> bool:
    """Whether a word of one or two letters ends right before a place."""
    return any(
        at >= n and all(text[p].isalpha() for p in range(at - n, at)) and not letter_or_digit_at(text, at - n - 1)
        for n in (1, 2)
    )


def graded_mark(text: str, at: int) -> bool:
    """Whether a mark belongs to a grade, a blood group or a language: 'A-', 'AB+', 'C#', 'C++11'."""
    start, end = run_start(text, at, "+-#"), run_end(text, at, "+-#")
    if text[at] not in "+-#" or not short_word_ends(text, start):
        return False
    return not letter_or_digit_at(text, end) or (set(text[start:end]) == {"+"} and end - start > 1)
