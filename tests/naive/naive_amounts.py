"""Which quantity a key spells, the obvious way: the times of the day in a table, numbers in words by groups of three.

It shares nothing with the package.
"""

import re
from fractions import Fraction

from tests.naive.naive_reading import CURRENCY

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen".split()
)
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
GROUPS = ("billion", 10**9), ("million", 10**6), ("thousand", 10**3)
SCALES = {"trillion": 10**12, **dict(GROUPS)}
ABBREVIATIONS = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
NO_UNITS = {"am", "pm", "dozen", "lakh", "crore", "mn", "bn", "tn", "and", "of", "or", "to", "in", "hundred"}
NO_UNITS |= {*ONES, *TENS[2:], *SCALES}
SIGNS = {"dollar": "$", "euro": "€"}
CHAINS = (
    (("year",), ("month",), ("week",), ("day",), ("hour", "hr", "h"), ("minute", "min", "m"), ("second", "sec")),
    (("mile",), ("yard",), ("feet", "foot", "ft"), ("inch", "inches", "in")),
    (("stone",), ("pound", "lb"), ("ounce", "oz")),
    (("pound", "dollar", "euro"), ("pence", "cent")),
)
NO_PLURAL = {"h", "m", "feet", "foot", "ft", "inches", "in", "oz", "pence"}


def times() -> dict[str, tuple[Fraction, str]]:
    """Every spelling of a time without spaces, with its minute of the day."""
    table: dict[str, tuple[Fraction, str]] = {}
    for minutes in range(24 * 60):
        hour, minute, half = minutes // 60, f"{minutes % 60:02}", "am" if minutes < 720 else "pm"
        of_12 = 12 if hour % 12 == 0 else hour % 12
        names = [f"{form}:{minute}{half}" for form in (f"{of_12}", f"{of_12:02}")]
        names += [f"{form}{half}" for form in (f"{of_12}", f"{of_12:02}") if minute == "00"]
        names += [f"{hour:02}:{minute}"] if not 1 <= hour <= 12 else []
        table |= dict.fromkeys(names, (Fraction(minutes), "time"))
    return table


TIMES = times()


def quantity(key: str) -> tuple[Fraction, str] | None:
    """The amount and the unit of a key; None where it spells no quantity."""
    if re.fullmatch(r"\d\d?(:\d\d)?( ?[ap]m)?", key, re.ASCII):
        return TIMES.get(key.replace(" ", ""))
    price = re.fullmatch(r"([$£¥฿₠-\u20cf])([\d.]+)(?: ?([a-z]+))?", key, re.ASCII)
    if price:
        scales = {"": 1, **SCALES, **ABBREVIATIONS}
        return admit(in_digits(price[2], scales.get(price[3] or "")), price[1])
    percent = re.fullmatch(r"([\d.]+%|.+ per ?cent)", key, re.ASCII)
    amount, _, unit = (re.sub("%| per ?cent", "", key), "", "%") if percent else key.rpartition(" ")
    if not percent and (not unit.isalpha() or not 2 <= len(unit) <= 30 or {unit, unit.removesuffix("s")} & NO_UNITS):
        return None
    digits, _, scale = amount.partition(" ")
    is_number = re.fullmatch(r"[\d.]+( [a-z]+)?", amount, re.ASCII)
    value = in_digits(digits, {"": 1, **SCALES}.get(scale)) if is_number else in_words(amount)
    if unit in SIGNS and value != 1:
        return None
    return admit(value, SIGNS.get(unit.removesuffix("s") if unit[-2:] != "ss" else unit, unit))


def admit(value: Fraction | None, unit: str) -> tuple[Fraction, str] | None:
    return None if value is None or value >= 10**15 or 10**6 % value.denominator else (value, unit)


def spelling(value: Fraction, unit: str) -> str:
    """The spelling of a quantity that stands for all of them: in digits, a time in 24 hours where that is clear."""
    if unit == "time":
        hour, minute = divmod(int(value), 60)
        return f"{hour}:{minute:02} {'am' if hour < 12 else 'pm'}" if 1 <= hour <= 12 else f"{hour:02}:{minute:02}"
    whole, rest = divmod(value, 1)
    digits = f"{whole}" + (f".{int(rest * 10**6):06}".rstrip("0") if rest else "")
    return f"{digits}%" if unit == "%" else f"{digits} {unit}" if unit[0].isalpha() else f"{unit}{digits}"


def in_digits(digits: str, scale: int | None) -> Fraction | None:
    """The value of a decimal in its shortest form, with a scale that it is not below."""
    if scale is None or not re.fullmatch(r"(0|[1-9]\d*)(\.\d*[1-9])?", digits):
        return None
    value = Fraction(digits)
    return value * scale if scale == 1 or value >= 1 else None


def in_words(text: str) -> Fraction | None:
    """The value of a number in words, with `and` wherever it may be or nowhere."""
    value = group = 0
    parts = re.findall("|".join(sorted((*ONES, *TENS[2:], "hundred", *dict(GROUPS)), key=len, reverse=True)), text)
    for word in parts:
        if word in dict(GROUPS):
            value, group = value + group * dict(GROUPS)[word], 0
        elif word == "hundred":
            group *= 100
        else:
            group += ONES.index(word) if word in ONES else 10 * TENS.index(word)
    value += group
    if not parts or value >= 10**12:
        return None
    words = [part.replace(" ", "") for part in text.split(" and ")]
    speech = [part.replace(" ", "") for part in spoken_number(value).split(" and ")]
    return Fraction(value) if words in (speech, ["".join(speech)]) and "  " not in text else None


def spoken_number(value: int) -> str:
    if value == 0:
        return "zero"
    out = ""
    for name, scale in (*GROUPS, ("", 1)):
        group = value // scale % 1000
        if group:
            last = value % (scale * 1000) if scale == 1 else 100
            out += f"{' and ' if out and last < 100 else ' '}{spoken_group(group)} {name}".rstrip()
    return out.strip()


def spoken_group(group: int) -> str:
    hundreds, rest = divmod(group, 100)
    tens = ONES[rest] if rest < 20 else f"{TENS[rest // 10]} {ONES[rest % 10] if rest % 10 else ''}".strip()
    head = f"{ONES[hundreds]} hundred" if hundreds else ""
    return f"{head} and {tens}" if head and rest else head or tens


def is_part(key: str, text: str, start: int, end: int) -> bool:
    """Whether an amount is part of another: halved, negative, a rate, in a range, or with a larger or smaller unit."""
    start += len(re.match("(an? )?", text[start:end], re.I)[0])  # type: ignore[index]
    before, behind = text[:start].lower(), text[end:].lower()
    if re.search(r"(?<!\w)(half|third of|quarter of) an? \Z", before):
        return True
    first = re.sub(rf"\A[^\w{CURRENCY}]*", "", text[start:])
    first = re.sub(r"\Aan? ", "", first, flags=re.I)
    if not re.match(rf"[0-9{CURRENCY}]|{WORD}", key, re.I) or not re.match(
        rf"[a-z]{{0,3}}[{CURRENCY}]|[0-9]|({WORD})+\b", first, re.I
    ):
        return False
    ends = text[end - 1] in ".,;:!?"
    is_year = re.search(r"[12][0-9]{3}\Z", text[:end]) is not None
    return (
        (text[start].isalpha() and re.search(r"(?<!\w)(minus|negative|point)[ -]\Z", before) is not None)
        or ("0" <= text[start] <= "9" and is_behind_price(before[-60:]))
        or (not ends and (is_rate(behind.split(" "), is_year) or has_fraction(behind)))
        or (not ends and is_bare(text[start:end]) and has_scale(behind, "-" if is_year else TO))
        or (quantity(key) is not None and is_parted(before))
        or is_compound(text, start, end)
    )


def is_behind_price(before: str) -> bool:
    return re.search(rf"[{CURRENCY}] ?[0-9.,]+(-| - |[ -](to|or)[ -])\Z", before) is not None


def is_parted(before: str) -> bool:
    parts = "(half|halfs|halve|halves|(third|quarter|fifth|tenth|hundredth|thousandth)s?)"
    return re.search(rf"(?<!\w)({parts} of |point[ -])\Z", before) is not None


def is_compound(text: str, start: int, end: int) -> bool:
    """Whether an amount in a larger unit and one in a smaller unit are together in a place that a span cuts."""
    amount, span = rf"(?:[0-9][0-9.,/]*+|{WORD}(?>(?:[ -]{WORD})*))", {*range(start, end)}
    for chain in CHAINS:
        for at, larger in enumerate(chain[:-1]):
            smaller = forms(*(name for names in chain[at + 1 :] for name in names))
            head = rf"(?:[0-9]|\b(?:an?|{WORD}))[ -]?{forms(*larger)}(?:(?<![a-z]{{4}})\.)?,?(?: and)? "
            compound = re.compile(rf"(?=({head}{amount}[ -]?{smaller}\b))", re.I)
            for match in compound.finditer(text, max(0, start - 60), end + 60):
                places = {*range(*match.span(1))}
                if places & span and not places <= span:
                    return True
    return False


def is_rate(words: list[str], is_year: bool) -> bool:
    """Whether up to two words lead to "per" with a word, or up to one to "a day" and the like."""
    for at, word in enumerate(words[1:4], start=1):
        unit, following = [*words[at + 1 :], "", ""][:2]
        if word == "per" and re.match(r"[^\W\d_]", unit) and not re.match(r"cent\b", unit):
            return words[0] == "" and not is_year
        if at < 3 and word in ("a", "an") and not is_year and re.match(rf"{TIMES_OF_RATES}(?![\w-])", unit):
            is_later = re.match(r"(time|later|earlier|after|before|ago)\b", following)
            return words[0] == "" and not (is_later and re.fullmatch(TIMES_OF_RATES, unit))
        if not re.fullmatch(r"[^\W\d_]{1,10}", word):
            return False
    return False


def has_fraction(behind: str) -> bool:
    parts = rf"((an?[ -])?(half|quarter)|{WORD}[ -]((half|quarter|third|fifth|tenth)|(quarter|third|fifth|tenth)s))"
    return re.match(rf"[ -]and[ -]{parts}\b(?! of)", behind) is not None


def is_bare(key: str) -> bool:
    """Whether a key is a number in digits, perhaps a price, or one or two number words below a hundred."""
    words = key.lower().split(" ")
    return re.fullmatch(rf"[{CURRENCY}]?[0-9][0-9.]*", key) is not None or (
        len(words) < 3 and {*words} <= {*ONES, *TENS[2:]}
    )


def has_scale(behind: str, joint: str) -> bool:
    """Whether a joint follows, and a number that a scale, a percent or a currency sign follows."""
    match = re.match(rf"{joint}[{CURRENCY}]?", behind)
    rest = behind[match.end() :] if match else ""
    heads = [re.match(r"[0-9][0-9.,]*+[ -]?", rest), *(re.match(rf"(?:{WORD}[ -]){{{n}}}", rest) for n in range(1, 5))]
    scale = rf"(?:(?:{SCALE}|k|m|b)\b|[%{CURRENCY}](?!\w))"
    return any(re.match(scale, rest[head.end() :]) for head in heads if head)


def forms(*names: str) -> str:
    return f"(?:{'|'.join(name if name in NO_PLURAL else f'{name}s?' for name in names)})"


TIMES_OF_RATES = "(second|minute|hour|day|week|month|year)"
TO = "(?:-| - |[ -](?:to|or|and)[ -])"
SCALE = "(?:hundred|thousand|million|billion|trillion|quadrillion|dozen|lakh|crore|mn|bn|tn)s?"
WORD = f"(?:{'|'.join(sorted((*ONES, *TENS[2:], 'hundred', *SCALES), key=len, reverse=True))})"
