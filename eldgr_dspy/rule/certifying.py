"""A rule under a consulted certificate: when the certificate is asked, about which answers, and what its reply means.

`certifying` wraps a rule. The wrapped rule yields `certificate` before the rule sees the pool, and `repair_certificate`
when the repairer has given an answer of a new class. So whoever drives a rule (the selector, a run, a replay) also asks
the certificate, with the inputs of `inputs_of`. This module uses only the standard library.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from eldgr_dspy.certificates import Certificate, Witness
from eldgr_dspy.decision import Choice, Decision, Rule, relay
from eldgr_dspy.errors import CertificateError, NotAskedError
from eldgr_dspy.rule.ballots import NOTHING, Ballot
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Certificates, Heard, Reply
from eldgr_dspy.rule.own_certificates import stands_in
from eldgr_dspy.words import Consulted, Role, is_role


@dataclass(frozen=True, slots=True)
class UnheardCertificate(Certificate):
    """Stands for a certificate whose call failed or whose reply cannot be used. It applies to nothing."""


Consulting = Generator[Consulted, Any, Choice]


def certifying(rule: Rule) -> Callable[[Case], Consulting]:
    """Return a rule that has a consulted certificate asked where one is set. With any other it is the same rule."""

    def steps(case: Case) -> Consulting:
        if answers := case.to_certify():
            _take(case, answers, (yield "certificate"))

        def hear(_: Role, reply: Reply) -> Generator[Consulted, Any, None]:
            if repair := case.to_certify(reply):
                _take(case, repair, (yield "repair_certificate"))

        return (yield from relay(rule(case), hear))

    return steps


def inputs_of(case: Case, name: Consulted, replies: Mapping[Any, Heard], module: object = None) -> dict[str, object]:
    """Return what is put to a role or a certificate; a judge with a true `takes_ballot` also gets a `Ballot`."""
    if is_role(name):
        ballot = {"ballot": ballot_of(case)} if name == "judge" and getattr(module, "takes_ballot", False) else {}
        return {**case.question.role_inputs(name), **ballot}
    answers = [(answer, case.passages_for(answer)) for answer in _answers_to_certify(case, name, replies)]
    return {"question": case.question.text, "answers": answers}


def ballot_of(case: Case) -> Ballot:
    question, answers = case.question, case.question.answers
    return Ballot(
        question.text,
        question.passages,
        question.texts or tuple(answer or "" for answer in answers),
        answers,
        case.vote.classes,
        question.stated or (NOTHING,) * len(answers),
    )


def _answers_to_certify(case: Case, name: Consulted, replies: Mapping[Consulted, Heard]) -> tuple[str, ...]:
    return case.to_certify(replies["repairer"] if name == "repair_certificate" else None)


def replies_in(replies: Mapping[Consulted, Heard]) -> dict[Role, Reply]:
    return {name: reply for name, reply in replies.items() if is_role(name) and not isinstance(reply, Certificates)}


def _take(case: Case, answers: tuple[str, ...], reply: Certificates | Abstention) -> None:
    """Give a case the certificates of answers. Without a usable reply they are inapplicable, so nothing overrides."""
    for answer in answers:
        if isinstance(reply, Abstention):
            case.supply(answer, _unheard(reply))
        elif answer in reply.by_answer:
            certificate, evidence = reply.by_answer[answer], case.passages_for(answer)
            stands = certificate.witness is None or stands_in(certificate.witness, evidence)
            case.supply(answer, certificate if stands else replace(certificate, witness=None))
        else:
            raise NotAskedError(f"The certificate was asked about other answers than {answer!r:.60}.")


def certify_again(case: Case, replies: Mapping[Any, Heard]) -> None:
    """Give a case the certificates that a run got, as far as it got them. The others are inapplicable."""
    names: tuple[Consulted, ...] = ("certificate", "repair_certificate") if "repairer" in replies else ("certificate",)
    for name in names:
        answers, reply = _answers_to_certify(case, name, replies), replies.get(name)
        certificates = reply.by_answer if isinstance(reply, Certificates) else {}
        never = dict.fromkeys(answers, _unheard(reply if isinstance(reply, Abstention) else Abstention("not asked")))
        _take(case, answers, Certificates({**never, **certificates}))


def _unheard(why: Abstention) -> UnheardCertificate:
    says_why = why.failed or why.kind == "unreadable"  # which the reason says
    return UnheardCertificate(None, why.reason if says_why else f"unusable: {why.reason}")


def is_withheld(case: Case, decision: Decision) -> bool:
    """Say whether `uncertified="abstain"` withholds the answer: it is uncertified, or its certificate's call failed."""
    if decision.certified is None:
        # An answer to which certificates do not apply, such as yes, ships.
        return isinstance(case.certificate(decision.answer), UnheardCertificate)
    return not decision.certified


@contextmanager
def naming_question(pool: str, question: str) -> Iterator[None]:
    """Add to the error of a user's certificate the question that it failed on."""
    try:
        yield
    except CertificateError as error:
        raise CertificateError(f"Question {question!r} of pool {pool!r}: {error}") from error.__cause__


# -- a reply as the journal has it -------------------------------------------------------------------------------------


def certificates_as_json(by_answer: Mapping[str, Certificate]) -> dict[str, Any]:
    certificates = [*by_answer.values()]
    content = {
        "answers": [*by_answer],
        "certified": [one.certified for one in certificates],
        "reasons": [one.reason for one in certificates],
    }
    witnesses = [None if one.witness is None else one.witness.as_json() for one in certificates]
    return {**content, "witnesses": witnesses} if any(witnesses) else content


def certificates_in(content: Mapping[str, Any]) -> Certificates | Abstention:
    """Return the certificates that a consulted certificate returned, or an abstention that says why there are none."""
    if "abstained" in content:
        return Abstention.from_content(str(content["abstained"]), content)
    # The content may be a recording that was written by hand.
    answers, certified = content.get("answers"), content.get("certified")
    if not isinstance(answers, list) or not isinstance(certified, list) or len(answers) != len(certified):
        return Abstention("answers and certified are not lists of one length", "invalid")
    if any(value is not None and type(value) is not bool for value in certified):
        return Abstention("certified has a value other than true, false and null", "invalid")
    n, lists = len(answers), (content.get("reasons"), content.get("witnesses"))
    reasons, witnesses = (one if isinstance(one, list) and len(one) == n else [None] * n for one in lists)
    return Certificates(
        {
            str(answer): Certificate(value, str(reason or ""), _witness(witness))
            for answer, value, reason, witness in zip(answers, certified, reasons, witnesses, strict=True)
        }
    )


def _witness(fields: Any) -> Witness | None:
    try:
        return Witness(**{**fields, "flags": tuple(fields["flags"])})
    except (TypeError, KeyError, ValueError):
        return None
