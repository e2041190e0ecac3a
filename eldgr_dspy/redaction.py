"""Replace credentials by `***` in every text that leaves the process.

By value: `remember` takes a credential, and `redact` replaces it wherever it occurs, also when all or some of its
characters are escaped for a URL, for JSON, Python or HTML, or when it is written in hexadecimal or in base64, also in
several lines (so also inside `Basic ...`). By name: `redact_message` also replaces what follows the name of a
credential in an address, a header or an error.

A part of a credential is not found, nor an encrypted one. These do not count as credentials: a value of fewer than
`LEAST` characters, only digits and fewer than `LEAST_DIGITS`, one character repeated, one word of at most 15 lowercase
letters, several such words joined by `_`, and a usual placeholder such as `not-needed`. They may occur in an honest
reply, which the journal must keep unchanged.
"""

import html
import json
import os
import re
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

MASK = "***"
LEAST = 8  # characters of a credential; a shorter one may be a word of a reply
LEAST_DIGITS = 12  # digits of a credential of only digits; a shorter one may be a number of a reply
SECRET_NAME = re.compile(
    r"key(?!word|board)|token(?!i[sz])|secret|pass(?:w|phrase|$)|pwd|auth(?!or(?!i[sz]))|cookie|credential|creds|bearer"
    r"|jwt",
    re.IGNORECASE,
)
"""What the name of a credential contains; "author" and "tokenizer" are not such names."""

_PLAIN_HEADER = re.compile(
    r"(?:x-|http-)?(?:accept(?:-charset|-encoding|-language)?|connection|content-(?:encoding|language|length|type)|host"
    r"|model(?:-\w+)?|origin|priority|provider|referer|region|(?:request-)?timeout|title|user-agent)"
    r"|(?:anthropic|openai|api|x-api|x-goog-api|editor|copilot-integration)-(?:beta|client|id|version)"
    r"|x-stainless-[a-z-]+|azureml-model-deployment",
    re.IGNORECASE,
)
_IN_QUERY = re.compile(r".*(?:key|token|secret|passw|pwd|sig|auth|cred|jwt|session|ticket).*|code", re.IGNORECASE)
_PLACEHOLDERS = frozenset(
    "anything api-key api_key changeme dummy-key dummy_key fake-key lm-studio localhost no-api-key no-key-needed"
    " no-key-required not-needed not-required not-used not_needed password placeholder sk-no-key-required something"
    " test-key test_key undefined whatever your-api-key your_api_key".split()
)
_ADDRESS = re.compile(r"(?:https?|socks\w*|wss?|ftp|file|redis|postgres\w*|mysql|amqp|mongodb)\S*://", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{,15}")
_LOWERCASE = re.compile(r"[a-z]{,15}|[a-z]+(?:_[a-z]+)+")  # a word, or a name of a field: `preferred`, `prompt_tokens`
_RANDOM = re.compile(r"\d|.{20}", re.DOTALL)
_SCHEME = re.compile(
    r"\b(basic|bearer|digest|negotiate|token)(\s+)(?=\S{0,99}\d|\S{20})[^\s\"'<>,;]{8,}", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]{1,999}@|(?<![\w.-])[^\s/@:'\"]{1,99}:[^\s/@'\"]{1,99}@(?=[\w\[])")
_PARAMETER = re.compile(r"(?<=[?&])([^=&?\s]{1,99})=[^&#\s'\"]+")
_FIELD = re.compile(
    r"((?<![a-z])(?:(?:access|api|auth|client|id|private|refresh|secret|session)[-_]?)?"
    r"(?:key|token|secret|password|passwd|pwd|auth|authorization|cookie|credentials?)[\"'\\]*\s*[:=]\s*[\"'\\]*)"
    r"(?=[^\s\"']{0,99}\d|[^\s\"']{16})[^\s\"'\\,;&<>(){}*]{8,}",
    re.IGNORECASE,
)
_NAMES = tuple("key token secret passw pwd auth cookie credential basic bearer digest negotiate".split())
_PERCENT = re.compile(r"%(?:25)*([0-9a-f]{2})", re.IGNORECASE)
_BACKSLASH = re.compile(r"\\(?:u00|x)([0-9a-f]{2})", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:amp;)*(#x?[0-9a-f]{1,9}|amp|lt|gt|quot|apos);", re.IGNORECASE)
_LINE_BREAK = r"(?:\\++[rn]|\s)"
_API_KEY = re.compile(r"api_?key|(?:access|auth)_?token", re.IGNORECASE)
_WORKING_FOLDER = frozenset(("PWD", "OLDPWD"))


class _Secrets:
    def __init__(self) -> None:
        self.spellings: tuple[tuple[str, str, bool], ...] = ()
        self._secrets = set[str]()
        self._lock = threading.Lock()

    def add(self, secret: str) -> None:
        with self._lock:
            if secret not in self._secrets:
                self._secrets.add(secret)
                pairs = [
                    *((text, False) for text in _spellings(secret)),
                    *((text, True) for text in _in_base64(secret)),
                ]
                forms = {(_bare(text), text.replace("\\", ""), breaks) for text, breaks in pairs} | {*self.spellings}
                long = (spelling for spelling in forms if len(spelling[0]) >= LEAST)
                self.spellings = tuple(sorted(long, key=lambda spelling: (-len(spelling[0]), spelling)))


_SECRETS = _Secrets()
_ENCODER = json.JSONEncoder(default=repr)


def redact(text: str) -> str:
    """Return a text without the credentials that were remembered, in any spelling."""
    if _SECRETS.spellings:
        forms = _forms(text)
        for bare, whole, breaks in _SECRETS.spellings:
            if bare in forms:
                text = _pattern(whole, breaks).sub(MASK, text)
                forms = _forms(text)
    return text


def redact_value(value: Any) -> Any:
    """Return a JSON value with every text in it, names of fields too, as `redact` returns it."""
    if not _SECRETS.spellings:
        return value
    text = _ENCODER.encode(value)  # one quick look at the whole; replacing here could tear an escape apart
    return value if redact(text) == text else _redact_within(value)


def _redact_within(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(name)): _redact_within(inner) for name, inner in value.items()}
    return [_redact_within(inner) for inner in value] if isinstance(value, list | tuple) else value


def redact_message(text: str) -> str:
    """Return an error, an address or a header without credentials, also without those that were never remembered."""
    clean = redact(text)
    if "@" in clean:
        clean = _USER_INFO.sub(f"{MASK}@", clean)
    if "=" in clean:
        clean = _PARAMETER.sub(_without_secret, clean)
    lower = clean.lower()
    if any(name in lower for name in _NAMES):  # the expressions take a hundred times as long
        clean = _FIELD.sub(rf"\1{MASK}", _SCHEME.sub(rf"\1\2{MASK}", clean))
    return clean


def remember(value: str) -> None:
    """Remember a credential, and any credential within it, such as the token after `Bearer`."""
    for secret in _within(value.strip()):
        least = LEAST_DIGITS if secret.isdecimal() else LEAST
        harmless = secret.lower() in _PLACEHOLDERS or _LOWERCASE.fullmatch(secret)
        if len(secret) >= least and len(set(secret)) > 1 and not harmless:
            _SECRETS.add(secret)


def remember_settings(settings: Mapping[str, Any], *, within: str = "", any_text: bool = True) -> None:
    """Remember the credentials in settings: those that a name announces, and those in addresses and headers."""
    # `within` names the settings. A header counts as a credential unless its name is known to be harmless; a parameter
    # of an address counts if its name may announce one.
    in_headers, in_query = within.lower().endswith("headers"), within.lower().endswith("query")
    for name, value in settings.items():
        secret = SECRET_NAME.search(name) or (in_query and _IN_QUERY.fullmatch(name))
        if isinstance(value, str):
            # Without `any_text` a short word does not count: a password may be `postgres`, a key the name of a field.
            if any_text or _API_KEY.search(name) or _RANDOM.search(value):
                _remember_text(value, bool(secret) or (in_headers and not _PLAIN_HEADER.fullmatch(name)))
        elif isinstance(value, Mapping):
            remember_settings({str(inner): setting for inner, setting in value.items()}, within=name, any_text=any_text)
        elif isinstance(value, list | tuple):
            if len(value) == 2 and isinstance(value[0], str) and "://" not in value[0]:  # a header, not two addresses
                remember_settings({value[0]: value[1]}, within=name, any_text=any_text)
            for item in value:
                remember_settings({name: item}, within=within, any_text=any_text)
        elif callable(reveal := getattr(value, "get_secret_value", None)):  # of Pydantic's SecretStr
            remember_settings({name: reveal()}, within=within)


def remember_environment() -> None:
    """Remember the credentials among the environment variables. The name of an existing file is not one."""
    variables = {name: value for name, value in os.environ.items() if name not in _WORKING_FOLDER}
    remember_settings({name: value for name, value in variables.items() if not _is_file(value)}, any_text=False)


def _remember_text(text: str, secret: bool) -> None:
    _remember_address(text)
    for match in _SCHEME.finditer(text):
        remember(match[0])
    if secret and not _ADDRESS.match(text.strip()):
        remember(text)


def _remember_address(text: str) -> None:
    """Remember user and password in an address, and the credentials in its query."""
    if "://" not in text and not ("@" in text and ":" in text):
        return
    try:
        parts = urlsplit(text.strip() if "://" in text else f"//{text.strip()}")
    except ValueError:
        return
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    if password:
        remember(f"{user}:{password}")
        remember(password)
        remember(unquote(password))
    if (password or "://" in text) and not _WORD.fullmatch(user):
        remember(unquote(user))
    for name, value in parse_qsl(parts.query):
        if _IN_QUERY.fullmatch(name):
            remember(value)


def _within(value: str) -> Iterator[str]:
    """A credential and those of its parts that are credentials too. A plain word of a passphrase is not."""
    yield value
    if "{" in value:  # JSON, whose parts are names
        return
    parts = [piece for part in re.split(r"[\s;,]+", value) for piece in (part, part.partition("=")[2])]
    scheme, _, payload = value.partition(" ")
    if scheme.lower() == "basic":
        parts += _decode(payload)
    yield from (part for part in parts if not _WORD.fullmatch(part))


def _decode(payload: str) -> list[str]:
    """The user with the password that a Basic header holds, and the password."""
    try:
        credentials = b64decode(payload, validate=True).decode("utf-8")
    except ValueError:
        return []
    return [credentials, credentials.partition(":")[2]]


def _is_file(value: str) -> bool:
    try:
        return os.sep in value and os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111 -- it may be anything
    except ValueError:
        return False


def _without_secret(match: re.Match[str]) -> str:
    """A parameter of an address, without its value where its name announces a credential."""
    return f"{match[1]}={MASK}" if _IN_QUERY.fullmatch(match[1]) else match[0]


def _bare(text: str) -> str:
    """A text as spellings are compared with it: in lower case, and without the backslashes of any escapes."""
    return text.replace("\\", "").lower()


def _forms(text: str) -> str:
    """A text bare, then also with its escapes undone, and in one line: a credential may hide in each of them."""
    forms, plain = [text], _unescape(text)
    if plain != text:
        forms.append(plain)
    if "\n" in text or "\\" in text:
        forms.append("".join(text.replace("\\n", "").replace("\\r", "").split()))
    return _bare("\n".join(forms))


def _unescape(text: str) -> str:
    for sign, escape in (("%", _PERCENT), ("\\", _BACKSLASH)):
        if sign in text:
            text = escape.sub(lambda match: chr(int(match[1], 16)), text)
    return _ENTITY.sub(lambda match: html.unescape(f"&{match[1]};"), text) if "&" in text else text


@lru_cache(maxsize=256)
def _pattern(spelling: str, breaks: bool) -> re.Pattern[str]:
    between = f"{_LINE_BREAK}{{0,4}}" if breaks else ""
    return re.compile(r"(?<!\\)" + between.join(map(_escape, spelling)), re.IGNORECASE)


def _escape(character: str) -> str:
    """A pattern of a character in every usual escape. No run of backslashes is tried twice."""
    code, plain = ord(character), re.escape(character)
    hexadecimal = f"|%(?:25)*{code:02x}|x{code:02x}" if code < 128 else ""
    name = html.escape(character).strip("&;") if character in '&<>"' else "apos" if character == "'" else "#"
    return rf"\\*+(?:{plain}|u{code:04x}{hexadecimal}|&(?:amp;)*(?:#0*{code}|#x0*{code:x}|{name});)"


def _spellings(secret: str) -> Iterator[str]:
    """A credential, and those of its spellings that do not escape it character by character, in one line."""
    data = secret.encode("utf-8", "surrogatepass")
    yield from (secret, _unescape(secret), quote(secret, errors="replace"), quote_plus(secret, errors="replace"))
    yield from (json.dumps(secret)[1:-1], repr(data)[2:-1], data.hex())


def _in_base64(secret: str) -> Iterator[str]:
    """The fixed part of its base64 at each of the three offsets that it may have in a longer text."""
    data = secret.encode("utf-8", "surrogatepass")
    for offset in range(3):
        code = b64encode(bytes(offset) + data).decode("ascii")
        part = code[(8 * offset + 5) // 6 : 8 * (offset + len(data)) // 6]
        yield part
        yield part.translate({ord("+"): "-", ord("/"): "_"})
