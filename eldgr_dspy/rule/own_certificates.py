"""Certificates of a user's own, in the place of the policies: a function `(answer, evidence, question)`.

It says True (the evidence certifies the answer), False, or None where it does not apply, or returns a `Certificate`
with a witness. `evidence` is a tuple of `Passage`. A function of two arguments is not given the question. It is called
at most once for each spelling of an answer, and never for an empty one.

One that must be awaited or that asks an LM (a coroutine function, a DSPy module) is *consulted*: the caller of the rule
asks it once for each class of answers, before the rule, and for a repair when it arrives. See
`eldgr_dspy.rule.certifying`.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, get_args

from eldgr_dspy.base.named_objects import NamedFunction, cause, load_object, name_of, source_of
from eldgr_dspy.certificates import Certificate, Level, Passage, Witness, holds
from eldgr_dspy.errors import ArgumentError, CertificateError, result_of

EMPTY = Certificate(False, "empty answer")
_EXAMPLE = "my_certificates:quoted"


@dataclass(frozen=True, slots=True)
class OwnCertificate(NamedFunction):
    """A user's certificate; `consulted` says whether it is awaited, or asks an LM."""

    consulted: bool = False

    def certify(self, answer: str, evidence: Sequence[Passage], question: str) -> Certificate:
        """Return the certificate of an answer that is not empty; whatever fails is a `CertificateError`."""
        try:
            value = self.call(answer, tuple(evidence), question)
        except Exception as error:
            raise self.failure(answer, error) from error
        return self.read(result_of(value, "certificate", "give a function that is not"), answer, tuple(evidence))

    def call(self, answer: str, evidence: tuple[Passage, ...], question: str) -> Any:
        return self.function(*(answer, evidence, question)[: _arguments(self.function)])

    def failure(self, answer: str, error: Exception) -> CertificateError:
        return CertificateError(
            f"The certificate {self.name!r} failed on the answer {answer!r:.60}: {cause(error, self.function)}."
        )

    def read(self, value: object, answer: str, evidence: Sequence[Passage]) -> Certificate:
        """Return what the function returned as a certificate; anything else is a `CertificateError`."""
        if is_certificate(value):
            if value.witness is not None and not stands_in(value.witness, evidence):
                raise CertificateError(
                    f"certificate({answer!r:.60}, ...) returned a witness that is not in the evidence; make it with "
                    f"`eldgr_dspy.certificates.certify`, or leave it out. Change {self.name}."
                )
            return value
        if value is None or isinstance(value, bool):
            return Certificate(value, f"by the certificate {self.name}")
        raise CertificateError(
            f"certificate({answer!r:.60}, ...) returned {value!r:.60}; a certificate is True, False, or None where it "
            f"does not apply, or a Certificate of one of them with a reason. Change {self.name}."
        )


def is_certificate(value: object) -> TypeGuard[Certificate]:
    """Return whether what somebody else returned is a certificate. Its witness is checked by `stands_in`."""
    one: Any = value
    return isinstance(value, Certificate) and isinstance(one.certified, bool | None) and isinstance(one.reason, str)


def stands_in(witness: object, evidence: Sequence[Passage]) -> bool:
    """Return whether a witness that somebody else made is one, and is in the evidence."""
    try:
        return isinstance(witness, Witness) and witness.level in get_args(Level) and holds(witness, evidence)
    except (TypeError, IndexError):
        return False


class OwnEvidence:
    """The passages of one question under a user's certificate; has the face of `eldgr_dspy.certificates.Evidence`."""

    def __init__(self, passages: Sequence[Passage], own: OwnCertificate) -> None:
        self.passages = tuple(passages)
        self._own = own

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        return self._own.certify(answer, self.passages, question) if answer and answer.strip() else EMPTY


def own_certificate(value: object) -> OwnCertificate:
    """Return a user's certificate from a function, or from its name `module:function`."""
    if isinstance(value, OwnCertificate):
        return value
    function, name = (
        (load_object(value, "certificate", _EXAMPLE), value) if isinstance(value, str) else (value, name_of(value))
    )
    if isinstance(function, type) or not callable(function):
        raise ArgumentError(
            f"certificate={name!r} must be a function (answer, evidence, question) -> True, False or None, or an "
            f"instance of a DSPy module; got {function!r:.80}."
        )
    return OwnCertificate(name, source_of(function), function, _is_consulted(function))


def _is_consulted(function: Any) -> bool:
    functions = (function, getattr(function, "__call__", None))  # noqa: B004 - the method is looked at, not tested for
    return hasattr(function, "acall") or any(map(inspect.iscoroutinefunction, functions))


def recorded_certificate(value: object) -> OwnCertificate:
    """Return the certificate of recorded replies, as `own_certificate` does. Of a consulted one, a class is enough."""
    kind: Any = load_object(value, "certificate", _EXAMPLE) if isinstance(value, str) else value
    if isinstance(kind, type) and _is_consulted(kind):  # nothing that was asked is asked again
        name = value if isinstance(value, str) else name_of(kind)
        return OwnCertificate(name, source_of(kind), kind, consulted=True)
    return own_certificate(value)


def _arguments(function: Callable[..., Any]) -> int:
    """Return how many of answer, evidence and question a function takes: the third only if it asks for it."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return 3
    takes_question = any(one.default is one.empty or one.name == "question" for one in parameters[2:3])
    return 3 if takes_question or any(one.kind is one.VAR_POSITIONAL for one in parameters) else 2
