"""Everything that shapes a call: if any of it changed, an old consultation would be another question.

The details are readable, so that a run that cannot be resumed can say what changed. The fingerprint is their hash.
"""

import inspect
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import dspy
from pydantic import BaseModel, PydanticUserError, TypeAdapter

from eldgr_dspy.programs.certifier import Certifier
from eldgr_dspy.programs.engines.local import LocalLM
from eldgr_dspy.programs.engines.strict import STRICT
from eldgr_dspy.programs.judges.frames import CountingJudge
from eldgr_dspy.programs.lms.credentials import remember_credentials
from eldgr_dspy.programs.lms.lms import sub_modules
from eldgr_dspy.redaction import MASK, SECRET_NAME, redact_message, redact_value

UNWRITTEN = "unwritten"
"""The key under which a demonstration has the text of a value that JSON cannot hold."""

_UNPLAIN = frozenset({"callbacks", "history", "_compiled"})


def describe(module: dspy.Module) -> dict[str, Any]:
    """Return the details of a role: class, code and plain attributes, prompts with demos, LMs, adapter, versions.

    They contain no credential, and from now on none that the role holds is written or shown.
    """
    remember_credentials(module)
    adapter = dspy.settings.adapter
    # Without predictors, whose own state is described as prompts.
    parts = [(name, part) for name, part in sub_modules(module, dspy.Module) if not isinstance(part, dspy.Predict)]
    details = {
        "module": _name(type(module)),
        "code": _code(module),
        "attributes": {name: _options(part) for name, part in parts if _options(part)},
        "prompts": {name: _prompt(predictor) for name, predictor in predictors(module)},
        "lm": _lm(module),
        "adapter": _name(type(adapter or STRICT)),
        "adapter_options": {} if adapter is None or adapter is STRICT else _options(adapter),
        "versions": {name: version(name) for name in ("dspy", "eldgr_dspy")},
    }
    facts = getattr(module, "facts", None)  # a module of a user's own may have another part of that name
    extra = {"facts": facts} if facts and isinstance(facts, Mapping) and _is_plain(facts) else {}
    clean: dict[str, Any] = redact_value(_finite(details | extra))
    return clean


def predictors(module: dspy.Module) -> list[tuple[str, Any]]:
    """Return every predictor of a module with its path, including those of compiled sub-modules, which DSPy omits."""
    return [(name.removeprefix("self."), predictor) for name, predictor in sub_modules(module, dspy.Predict)]


def asks_by_code(module: dspy.Module) -> bool:
    """Return whether a module calls a user's function, which may ask the LM of DSPy's settings."""
    certifies = isinstance(module, Certifier) and not isinstance(module.certificate, dspy.Module)
    return certifies or any(part.asks_lm for _, part in sub_modules(module, CountingJudge))


def fingerprint(details: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that identify the details."""
    return digits(_canonical(details).encode())


def digits(content: bytes) -> str:
    """Return 16 hexadecimal digits of a hash."""
    return sha256(content).hexdigest()[:16]


def _code(module: dspy.Module) -> dict[str, str]:
    """Return a hash of the source of each class that a module is made of. For DSPy's own, the version is enough."""
    kinds = {kind for _, part in sub_modules(module, dspy.Module) for kind in type(part).__mro__}
    texts = dict[str, str]()
    for kind in kinds:
        if kind.__module__.split(".")[0] not in ("dspy", "builtins"):
            with suppress(OSError, TypeError):  # typed at a prompt, or made by a call
                texts[_name(kind)] = inspect.getsource(kind)
    return {name: digits(text.encode()) for name, text in sorted(texts.items())}


def _options(owner: Any) -> Any:
    """The attributes of an object that are plain JSON values, without secrets."""
    return _clean({name: value for name, value in vars(owner).items() if name not in _UNPLAIN and _is_plain(value)})


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_plain(inner) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _finite(value: Any) -> Any:
    """Return details with the text of each number that JSON cannot hold: NaN differs from itself."""
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _prompt(predictor: Any) -> dict[str, Any]:

    def readable(value: Any) -> Any:
        return value.model_dump(mode="json") if isinstance(value, BaseModel) else {UNWRITTEN: repr(value)}

    demos = [json.loads(json.dumps(dict(demo.items()), default=readable)) for demo in predictor.demos]
    types = {name: _type(field.annotation) for name, field in predictor.signature.fields.items()}
    signature = predictor.signature.dump_state()
    return {"signature": signature, "types": types, "demos": demos, "config": _clean(predictor.config)}


def _type(annotation: Any) -> Any:
    try:
        return _plain(TypeAdapter(annotation).json_schema())
    except PydanticUserError:
        return repr(annotation)


def _lm(module: dspy.Module) -> Any:
    """Return the LMs of a module: one description if they are all the same, else one each, or None without LMs."""
    lms = {name: p.lm or dspy.settings.lm for name, p in predictors(module)}
    lms |= {"settings": dspy.settings.lm} if asks_by_code(module) else {}
    ids = {id(lm) for lm in lms.values()}
    lms |= {name: lm for name, lm in sub_modules(module, dspy.BaseLM) if id(lm) not in ids}
    descriptions = {name: describe_lm(lm) for name, lm in lms.items()}
    distinct = {_canonical(description) for description in descriptions.values()}
    return next(iter(descriptions.values())) if len(distinct) == 1 else descriptions or None


def describe_lm(lm: Any) -> dict[str, Any] | None:
    """Return the details of an LM: its model, and its settings without secrets, or None without an LM."""
    if lm is None:
        return None
    kind = getattr(lm, "model_type", None)
    settings = _clean(getattr(lm, "kwargs", {}))
    if isinstance(lm, LocalLM):  # whose server listens elsewhere in each process
        settings = {**settings, "file": lm.file}
        del settings["api_base"]
    wish = vars(lm).get("structured")
    return {"model": lm.model, "model_type": kind, "settings": settings} | ({"structured": wish} if wish else {})


def _clean(value: Any, *, secret: bool = False) -> Any:
    """Mask what is under the name of a secret, but for numbers, which are counts; make everything else plain."""
    if isinstance(value, Mapping):
        mapping = {str(name): inner for name, inner in value.items()}
        return {name: _clean(one, secret=secret or bool(SECRET_NAME.search(name))) for name, one in mapping.items()}
    if isinstance(value, list | tuple):
        pair = len(value) == 2 and isinstance(value[0], str) and "://" not in value[0]  # a header, not two addresses
        if not secret and pair and SECRET_NAME.search(value[0]):
            return [value[0], _clean(value[1], secret=True)]
        return [_clean(one, secret=secret) for one in value]
    if secret:
        return value if value is None or isinstance(value, int | float) else MASK
    return redact_message(value) if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> Any:
    """Make a value plain JSON, as it is."""
    return json.loads(json.dumps(value, default=repr))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
