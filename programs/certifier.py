"""A user's certificate that is awaited or asks an LM, as a DSPy module that is asked about several answers at once."""

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

import dspy

from eldgr_dspy.certificates import Certificate, Passage
from eldgr_dspy.errors import ArgumentError, RunStoppedError
from eldgr_dspy.programs.lms.consulting import FAILURES, FlawedReplyError, aask, is_too_long
from eldgr_dspy.programs.lms.one_call import calls_of
from eldgr_dspy.programs.service.threads import in_own_loop
from eldgr_dspy.rule.certifying import certificates_as_json
from eldgr_dspy.rule.own_certificates import OwnCertificate

_UNUSABLE = (dspy.AdapterParseError, FlawedReplyError)  # replies that cannot be used, and are not asked for again


class Certifier(dspy.Module):
    """Asks a user's certificate about each of several answers: once each, side by side.

    A DSPy module is called with `answer`, `evidence` and `question`, and returns a prediction with `certified`; a
    coroutine function is called as `eldgr_dspy.rule.own_certificates` says. If a reply about one answer cannot be used,
    none is.

    Attributes:
        certificate: The user's module or function. A module's predictors are those of the selector.
    """

    sets_lm = False

    def __init__(self, own: OwnCertificate) -> None:
        super().__init__()
        if isinstance(own.function, type):
            raise ArgumentError(
                f"The certificate {own} is a class, and only an instance can be asked. Make one at module level, and "
                "give it or its name."
            )
        self.certificate, self._own = own.function, own
        self.name, self.source = own.name, own.source  # plain, so that a run states them

    def forward(self, question: str, answers: Sequence[tuple[str, Sequence[Passage]]]) -> dspy.Prediction:
        """Return `answers`, whether each is `certified`, and the `reasons`. See `certificates_as_json`.

        Args:
            question: The question. answers: each answer with its evidence.

        Raises:
            CertificateError: The certificate raised, or returned something that is not a certificate.
            dspy.AdapterParseError, ReplyError: A reply cannot be used.
            Exception: What an LM's call raises, see `eldgr_dspy.programs.lms.consulting.FAILURES`.
        """
        return in_own_loop(self.aforward(question, answers))

    async def aforward(self, question: str, answers: Sequence[tuple[str, Sequence[Passage]]]) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        results = await asyncio.gather(
            *(self._ask(answer, tuple(passages), question) for answer, passages in answers), return_exceptions=True
        )
        errors = [error for error in results if isinstance(error, BaseException)]
        # A failure comes first: it is asked again, and an unusable reply is not.
        for error in sorted(errors, key=lambda error: isinstance(error, _UNUSABLE) or is_too_long(error)):
            raise error
        pairs = zip((answer for answer, _ in answers), results, strict=True)
        return dspy.Prediction(
            **certificates_as_json({answer: one for answer, one in pairs if isinstance(one, Certificate)})
        )

    def most_calls(self, answers: Sequence[Any]) -> int | None:
        """Return how many LM calls the certificates of several answers take at most, or None if it is not known."""
        certificate: Any = self.certificate
        each = 1 if isinstance(certificate, dspy.Predict) else calls_of(certificate, [])
        return None if each is None else each * len(answers)

    async def _ask(self, answer: str, evidence: tuple[Passage, ...], question: str) -> Certificate:
        try:
            value = await self._verdict(answer, evidence, question)
        except (RunStoppedError, *FAILURES, *_UNUSABLE):
            raise
        except Exception as error:
            raise self._own.failure(answer, error) from error
        return self._own.read(value, answer, evidence)

    async def _verdict(self, answer: str, evidence: tuple[Passage, ...], question: str) -> Any:
        if not isinstance(self.certificate, dspy.Module):
            value = self._own.call(answer, evidence, question)
            return await value if inspect.isawaitable(value) else value
        reply = await aask(self.certificate, {"answer": answer, "evidence": evidence, "question": question})
        if reply.error is not None:
            raise reply.error
        if "abstained" in reply.content:
            return Certificate(None, str(reply.content["abstained"]))
        return reply.content.get("certified", reply.content)
