"""What a reader sees of a text, one character at a time: markup resolved, folded, and without what surrounds an answer.

A text is a list of pieces: what is seen, and the place in the source where that begins.
"""

import html
import re
import unicodedata
from functools import cache

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
DASHES = "-‐‑‒–—―−﹘﹣－"
QUOTES = {"'": "`´ʹʻʼʾʿ‘’‚‛‹›′＇", '"': "«»“”„‟″〝〞＂"}
PAIRS = dict(zip("([{「『《【〈〔⟨⟪〖", ")]}」』》】〉〕⟩⟫〗", strict=True))
CURRENCY = "$£¥฿₠-\u20cf"
# The documentation says "formatting tags" and "LaTeX"; these are those that are meant.
INLINE = "a abbr answer b big cite code del dfn em final final_answer font i ins kbd mark q s samp small span strike\
 strong tt u"
BLOCKS = "blockquote br dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre table tbody td th thead tr ul"
COMMANDS = (
    "boxed emph fbox mathbf mathit mathrm mathsf mathtt mbox operatorname text textbf textit textrm texttt underline"
)
TAG = re.compile(r"""</?([a-z_]+[1-6]?)((?:\s+[a-z][\w:-]*\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=]+))*)\s*/?>""", re.I)
ENTITY = re.compile(r"&(?:[a-z][a-z0-9]{1,9}|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.I)
STOPS = "adm approx apt assn ave bldg blvd brig bros ca capt cf chap cmdr co col corp cpl dept dist dr ed eds eq \
est etc ex feat fig figs ft gen gov hon inc inst jr lt ltd maj messrs mlle mme mr mrs ms msgr mt mts op \
orig ph pl pp pres prof pt pvt rd ref rep resp rev sen sgt sq sr st ste supt univ viz vol vols vs wm jan \
feb mar apr jun jul aug sep sept oct nov dec".split()
EAST_ASIAN = r"[\u3040-\u9fff\uac00-\ud7af]"  # a sentence may end right before these
BEFORE_NUMBERS = "no nos art ch sec".split()

Piece = tuple[str, int]


@cache
def invisible(character: str) -> bool:
    """Zero-width characters, soft hyphens, direction marks and the like; not what turns the direction of others."""
    code = ord(character)
    return (
        unicodedata.category(character) == "Cf"
        and character not in BIDI
        and not 0x600 <= code <= 0x605
        and character not in "\u06dd\u070f\u08e2"
        and not 0x890 <= code <= 0x891
        and not 0x110BD <= code <= 0x110CD
    )


# --- markup -----------------------------------------------------------------------------------------------------------


@cache
def resolve(text: str) -> list[Piece]:
    """The characters that are shown: entities as what they stand for, formatting tags as nothing or a space."""
    out: list[Piece] = []
    at = 0
    while at < len(text):
        view, end = text[at], at + 1
        wrap = text[at] in "\u00ad\r\n" and re.match(r"(?:\u00ad[ \t]*)?\r?\n[ \t]*(?=[^\W\d_])", text[at:])
        if wrap and (text[at] == "\u00ad" or re.search(r"[^\W\d_][-\u2010]\Z", text[:at])):
            at += len(wrap[0])
            continue
        tag, entity = TAG.match(text, at), ENTITY.match(text, at)
        before, behind = text[at - 1 : at] or " ", tag
        while behind and behind[1].lower() in INLINE.split():  # tags may stand between a number and its power
            behind = TAG.match(text, behind.end())
        raising = behind and {"<sup": "0123456789)", "<sub": "0123456789"}.get(behind[0][:4].lower(), "")
        if behind and raising and before in raising:
            view, end = ("^" if ")" in raising else "_"), behind.end()  # 10^2 is not 102
        elif tag and tag[1].lower() in ("sup sub " + INLINE + " " + BLOCKS).split():
            view, end = (" " if tag[1].lower() in BLOCKS.split() else ""), tag.end()
        elif entity and len(html.unescape(entity[0])) <= len(entity[0]):
            view, end = html.unescape(entity[0]), entity.end()
        out += [(character, at) for character in view]
        at = end
    return out


def join(pieces: list[Piece]) -> str:
    return "".join(piece for piece, _ in pieces)


# --- folding ----------------------------------------------------------------------------------------------------------


def fold(text: str, *, keep_case: bool) -> list[Piece]:
    """The text as it is compared, in pieces; of white space in a row the first alone."""
    out: list[Piece] = []
    view = [(alike(character), at) for character, at in resolve(text)]
    for before, dash, behind in zip(view, view[1:], view[2:], strict=False):  # a long dash joins no name
        if dash[0] in "—―" and re.match(r"\w[^\W\d_]", before[0] + behind[0]) and behind[1] - before[1] == 2:
            view[view.index(dash)] = "~", dash[1]
    for cluster, at in clusters(view):
        piece = fold_cluster(cluster, keep_case)
        if piece and not (piece == " " and out and out[-1][0] == " "):
            out.append((piece, at))
    return with_subscripts(out)


@cache
def alike(character: str) -> str:
    if unicodedata.category(character) == "Nd":
        return str(unicodedata.digit(character))
    return {"№": "#", "İ": "I"}.get(character, "\u200b" if character in BIDI else character)


def clusters(characters: list[Piece]) -> list[Piece]:
    """Each character with the marks and the invisible characters behind it."""
    out: list[Piece] = []
    for character, at in characters:
        first = unicodedata.normalize("NFKD", character)[0]
        goes_on = invisible(character) or unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"
        if character == "\u0307" and out and out[-1][0][-1] in "Ii":
            continue  # the dot of İ
        if out and goes_on and not out[-1][0][-1].isspace() and len(out[-1][0]) < 40:
            out[-1] = (out[-1][0] + character, out[-1][1])
        else:
            out.append((character, at))
    return out


@cache
def fold_cluster(cluster: str, keep_case: bool) -> str:
    view = unicodedata.normalize("NFC", "".join(character for character in cluster if not invisible(character)))
    if view.isspace():
        return " "
    view = plain_marks(view)
    if not view or left_alone(view[0]):
        return view
    compatible = unicodedata.normalize("NFKC", view)
    return plain_marks(compatible if keep_case else unicodedata.normalize("NFKC", compatible.casefold()))


def plain_marks(text: str) -> str:
    for dash in DASHES:
        text = text.replace(dash, "-")
    for quote, variants in QUOTES.items():
        for variant in variants:
            text = text.replace(variant, quote)
    return text


def left_alone(character: str) -> bool:
    """Superscripts, subscripts, fractions, signs that hold a digit, and accents that stand alone."""
    compatible = unicodedata.normalize("NFKC", character)
    kind = unicodedata.decomposition(character).split(" ")[0]
    holds_digit = any(c.isdecimal() for c in compatible) and not character.isdecimal()
    accent = compatible[0] == " "
    return (
        unicodedata.category(character) == "No" or kind in ("<super>", "<sub>", "<fraction>") or holds_digit or accent
    )


def with_subscripts(pieces: list[Piece]) -> list[Piece]:
    """Subscript digits right behind a letter as digits, unless a digit follows them."""
    out = list(pieces)
    for at in range(len(pieces)):
        end = at
        while end < len(pieces) and pieces[end][0] in "₀₁₂₃₄₅₆₇₈₉":
            end += 1
        if at and end > at and pieces[at - 1][0][-1].isalpha() and not join(pieces[end : end + 1])[:1].isdecimal():
            out[at:end] = [(str(unicodedata.digit(piece)), place) for piece, place in pieces[at:end]]
    return out


def respell(text: str) -> str:
    """J.R.R. for J. R. R., 0.5 for .5, 5°C for 5 °C, 5% for 5 %, $5 for $ 5, <5 for < 5, 5-6 for 5 - 6."""
    letter = r"(?<!\w)[^\W\d_]"
    text = re.sub(rf"({letter})\. (?=[^\W\d_]\.)", r"\1.", text)
    text = re.sub(r"(?<![\w.])\.(?=[0-9])", "0.", text)
    text = re.sub(rf"(?<=[0-9]) (?=[¼-¾⅐-⅞]|\\?[%‰‱°]|\\?[{CURRENCY}](?!\w))", "", text)
    text = re.sub(r"(?<=[0-9]) - (?=[0-9])", "-", text)
    return re.sub(rf"(?<=[{CURRENCY}]) (?=[0-9.])|(?<=[<>≤≥]) (?=[0-9])|(?<=[0-9]') (?=[0-9])", "", text)


# --- stripping --------------------------------------------------------------------------------------------------------


@cache
def strip(text: str) -> str:
    """The answer that a text is: layer after layer of what surrounds it is taken off, up to four times."""
    for _ in range(4):
        if (inner := strip_once(text)) == text:
            break
        text = inner
    return text


def strip_once(text: str) -> str:
    text = " ".join("".join(c for c in join(resolve(text)) if not invisible(c)).split())
    text = re.sub(rf"\\(?:{'|'.join(COMMANDS.split())})\s?\{{([^{{}}]*)\}}", r"\1", text)
    text = re.sub(r"\\([%$&#_{}])", r"\1", text)
    text = re.sub(r"\[([^\[\]]+)\]\([^()\s]*\)", r"\1", text)
    passages = r"(?:see )?[Pp]assages? \d{1,3}(?:(?:,? and|,) \d{1,3}){0,9}"
    cited = rf"(?:(?:\[\^?[1-9]\d?\d?\]|【\d{{1,3}}[^】]{{0,40}}】|\[{passages}\])+|\({passages}\))"
    text = re.sub(rf"([^\W\d_][^\W\d_]|\d\d|[.*\"')]|. ){cited}(\W*)\Z", r"\1\2", text)
    has_letters = any(map(str.isalnum, text))
    while has_letters and not is_list("".join(map(shape, text))):
        inner = unwrap(text)
        if inner == text:
            inner = trim(text)
        if inner == text:
            break
        text = inner
    return text


@cache
def shape(character: str) -> str:
    """A quote, a dash or a full-width character as the plain one."""
    if "！" <= character <= "～":
        character = chr(ord(character) - 0xFEE0)
    return character if character == "`" else plain_marks(character)


def is_list(text: str) -> bool:
    """Whether a text is a pair or an interval, such as (1, 2] or (x, oo); "(1,000)" is one number in brackets."""
    terms = re.split("[,;]", text[1:-1])
    number = r"\\?\$?\.?\d[\w./\\{}^%]*"
    return (
        text[:1] in ("(", "[")
        and text[-1:] in (")", "]")
        and len(terms) > 1
        and not re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", text[1:-1])
        and all(
            re.fullmatch(rf"[-+]?\s*({number}|[^\W\d_]|\\(infty|pi)|∞|inf(inity)?|oo)", term.strip(), re.I)
            for term in terms
        )
    )


def unwrap(text: str) -> str:
    if len(text) < 3:
        return text
    view, inner = "".join(map(shape, text)), text[1:-1]
    first, last, plain = view[0], view[-1], view[1:-1]
    if first == last and first in "*_~" and (first not in plain or plain[0] == first):
        return inner
    if first in PAIRS and last == PAIRS[first] and is_balanced(plain, first, last):
        return inner
    if first == last and first in "'\"":
        within = plain
        while len(within) > 2 and within[0] == within[-1] == first:
            within = within[1:-1]
        if not has_quote(within, first):
            return inner
    for opener, closer in (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$")):
        middle = view[len(opener) : -len(closer)]
        if view.startswith(opener) and view.endswith(closer) and middle and not (opener[0] == "$" and "$" in middle):
            return text[len(opener) : -len(closer)]
    command = re.fullmatch(rf"\\(?:{'|'.join(COMMANDS.split())})\s?\{{(.+)\}}", view)
    if command and is_balanced(command[1], "{", "}"):
        return text[slice(*command.span(1))]
    tag = re.fullmatch(r"<(?!su[bp]\b)([A-Za-z][\w-]*)>(.+)</\1>", view)
    return text[slice(*tag.span(2))] if tag else text


def is_balanced(text: str, opener: str, closer: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == opener) - (character == closer)
        if depth < 0:
            return False
    return depth == 0


def has_quote(text: str, quote: str) -> bool:
    """Whether a text has a quotation mark other than an apostrophe or a mark of feet or inches."""
    for at, character in enumerate(text):
        before, behind = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
        if character != quote:
            continue
        if quote == '"' and (before not in [*'0123456789¼½¾⅓"'] or behind.isalnum() or behind == "_"):
            return True
        opens = not (before.isalnum() or (before in ("_", "'") and before))
        if quote == "'" and (opens or (before.isalpha() and not (behind.isalnum() or behind == "_"))):
            return True
    return False


def is_numeral(character: str) -> bool:
    return character != "" and unicodedata.category(character) in ("Nd", "No", "Nl")


def loose(character: str) -> bool:
    mark = shape(character)
    return (
        mark in " ~|^=<>`✅✔❤⭐\ufe0f"
        or 0x1F1E6 <= ord(mark) <= 0x1FAFF
        or (mark not in "'\"" and unicodedata.category(mark)[0] == "P")
    )


def trim(text: str) -> str:
    plain = "".join(map(shape, text))
    start, end = 0, len(text)
    while start < end and loose(text[start]) and not keeps_first(plain[start:end]):
        start += 1
    while start < end and loose(text[end - 1]) and not keeps_last(plain[start:end]):
        end -= 1
    return text[start:end] or text


def near_number(text: str) -> bool:
    """Whether a number begins within three marks."""
    for character in text[:4]:
        if is_numeral(character):
            return True
        if character.isalnum() or character in "_ ":
            return False
    return False


def keeps_first(text: str) -> bool:
    mark, rest = text[0], text[1:]
    if mark in PAIRS:
        return PAIRS[mark] in rest
    if mark == ".":
        return is_numeral(rest[:1])
    if mark == "-":
        near = rest.removeprefix(" ")
        symbol = rf"\\?[{CURRENCY}]|\\[A-Za-z]|[∞√]|\((?![^\W\d_][^\W\d_])"
        return rest[:1].isalnum() or near_number(near) or re.match(symbol, near) is not None
    if mark == "\\":
        return re.match("[A-Za-z]", rest) is not None
    return mark in "<>" and near_number(rest.removeprefix("=").removeprefix(" "))


def keeps_last(text: str) -> bool:
    rest, mark = text[:-1], text[-1]
    if mark in PAIRS.values():
        return any(closer == mark and opener in rest for opener, closer in PAIRS.items())
    if mark == ".":
        return re.search(r"(?<!\w)[^\W\d_]\. ?[^\W\d_]\.\Z", text) is not None or is_abbreviation(rest)
    if mark in "%‰‱٪؉؊":
        return rest.rstrip(" .\\")[-1:].isnumeric()
    if mark == "+" and is_numeral(rest[-1:]):
        return True
    word = rest.rstrip("+") if mark == "+" else rest
    return mark in "+-#" and re.search(r"(?<![^\W\d_])(?:[^\W\d_][\u0300-\u036f]{0,3}){1,2}\Z", word) is not None


# --- sentences --------------------------------------------------------------------------------------------------------


def word_before(text: str) -> str:
    match = re.search(r"(?:[^\W\d_]\.)*[^\W_]+\Z", text)
    return match[0].lower() if match else ""


def is_abbreviation(text: str) -> bool:
    return word_before(text) in STOPS


def sentence_ends(text: str) -> list[tuple[int, int]]:
    """Where sentences end within a text, each with its stop and what closes it."""
    out: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        stop = re.match(r"[.!?]*", text[at:])[0]  # type: ignore[index]
        end = at + len(stop)
        while stop and end < len(text) and end - at - len(stop) < 4 and re.match(r"[^\w\s.!?]", text[end]):
            end += 1
        if text[at] in "。｡" and at + 1 < len(text):
            out.append((at, at + 1))
        elif stop and text[end : end + 1] == " " and end + 1 < len(text):
            out += [(at, end + 1)] if ends(text[:at], stop, text[end + 1]) else []
            at = end
        elif set(stop) & {"!", "?"} and "." not in stop and re.match(EAST_ASIAN, text[at + len(stop) :]):
            out.append((at, at + len(stop)))
            at += len(stop) - 1
        at += 1
    return out


def ends(before: str, stop: str, following: str) -> bool:
    word = word_before(before)
    if stop[0] != "." or stop.startswith("..") or not word:
        return True
    if word in BEFORE_NUMBERS:
        return not following.isdecimal()
    return word not in STOPS and not re.fullmatch(r"(?:[^\W\d_]\.)*[^\W\d_]", word)
