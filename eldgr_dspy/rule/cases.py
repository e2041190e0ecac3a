"""One question as a rule sees it: classes of answers, their certificates, and the answer that a reply stands for.

`Case` implements the protocol that the rules of `eldgr_dspy.decision` use, for one question under some settings, and
records the rule's choice. Certificates belong to classes: a class is certified if any of its spellings is, and the
spelling that occurs in the evidence ships. It uses only the standard library.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from eldgr_dspy.answer_types.answers import differ_by_percent_sign
from eldgr_dspy.answer_types.base import for_question
from eldgr_dspy.certificates import Certificate, Passage, is_as_written
from eldgr_dspy.decision import Choice, Decision, Rule, always
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Verdict
from eldgr_dspy.rule.derivations import CheckResult, check_derivation
from eldgr_dspy.rule.evidence import CertifyingEvidence
from eldgr_dspy.rule.named_judges import name_in
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.ranking import rank
from eldgr_dspy.rule.reasons import REFUSAL_NOTE, reason_of
from eldgr_dspy.rule.refusals import Refusing
from eldgr_dspy.rule.rules import rule_named
from eldgr_dspy.rule.voting import group
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import Role, Task

_BY_DERIVATION = Certificate(False, "a derivation certifies answers of this type, not the evidence")
_REFUSAL = Certificate(None, "the answer refuses, and an occurrence does not support a refusal")
_NO_VOTE = Certificate(False, "the answer refuses, which counts as no answer")


class Case:
    """A question under settings; `refuses` says of an answer whether they treat its class as a refusal."""

    def __init__(self, question: Question, settings: Settings | None = None) -> None:
        self.question, self.settings = question, settings or Settings()
        kind = self.settings.type_of(question)
        self.type = for_question(kind, question)
        self._refusals_vote = self.settings.refusal != "no_answer"
        is_binary = self.type.way == "derivation" or self.settings.certificate == "substring"
        refusals = () if self._refusals_vote and is_binary else self.settings.refusals
        self.refuses = Refusing(refusals, question.answers, self.type, bound=self.type is not kind)
        self.vote, self._grouping = group(question.answers, self.type, None if self._refusals_vote else self.refuses)
        self._evidence = CertifyingEvidence(question, self.type, self._grouping, self.settings.certificate)
        self._classes: dict[str, tuple[str, Certificate]] = {}
        voters = () if self.type.pooled else zip(question.answers, self.vote.classes, strict=True)
        self._keys = {answer: key for answer, key in voters if type(answer) is str}  # a Structure may equal a text
        self._own: dict[str, Certificate] = {}
        self._checks: dict[Derivation, CheckResult] = {}

    # -- what the rules ask -------------------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """How the declared type certifies, the only thing that a rule branches on."""
        return self.type.task

    @property
    def first(self) -> str | None:
        """The first candidate's answer, unchanged."""
        return self.question.answers[0] if self.question.answers else None

    @cached_property
    def consensus(self) -> str | None:
        """The majority's answer in the spelling that ships, None if no candidate votes."""
        return None if self.vote.winner is None else self._answer_of(self.vote.winner)

    @property
    def contested(self) -> bool:
        """Whether there is more than one class of answers."""
        return self.vote.n_classes > 1

    @property
    def standings(self) -> tuple[tuple[str, int], ...]:
        """Each class, as the spelling that ships, with its votes: most votes first, then earliest."""
        by_votes = sorted(self.vote.counts.items(), key=lambda class_: -class_[1])
        return tuple((self._answer_of(key), votes) for key, votes in by_votes)

    @property
    def repairable(self) -> bool:
        """Whether repairer or deriver may be asked: never for an empty pool; for one class, by the settings."""
        if self.vote.n_classes != 1:
            return bool(self.question.answers)
        return (self.settings.homogeneous or self.type.homogeneous) == "repair"

    def roles(self) -> tuple[Role, ...]:
        """The roles that `consult="always"` asks."""
        judge: tuple[Role, ...] = ("judge",) if self.task == "retrieval" and self.contested else ()
        repairer: Role = "repairer" if self.task == "retrieval" else "deriver"
        return (*judge, repairer) if self.repairable else judge

    def same(self, one: str | None, other: str | None) -> bool:
        """Whether two answers vote together; no answer is the same as any."""
        key = self._key(one)
        return key is not None and key == self._key(other)

    def certified(self, answer: str | None) -> bool | None:
        """Whether the answer's class is certified; None where the certificate is inapplicable."""
        return self.certificate(answer).certified

    def rival(self) -> bool:
        """Whether a class other than consensus's is certified."""
        others = dict.fromkeys(key for key in self.vote.classes if key is not None and key != self.vote.winner)
        return any(self._class(key)[1].certified for key in others)

    def stated(self, reply: Reply) -> str | None:
        """The answer that a judge's reply prefers, in the spelling that ships; None where it abstained."""
        verdict = self._usable(reply)
        return self._answer_of(self._voters[verdict.preferred]) if isinstance(verdict, Verdict) else None

    def preferred(self, reply: Reply) -> str | None:
        """The answer that a judge's reply stands for under the setting `preference`; None if it abstained."""
        verdict = self._usable(reply)
        return self._answer_of(self._voters[self._preferred_index(verdict)]) if isinstance(verdict, Verdict) else None

    def repaired(self, reply: Reply) -> str | None:
        """The span that a repairer's reply gives, None if it abstained or the span is blank."""
        if not isinstance(reply, Repair) or self._key(reply.answer) is None:
            return None
        return self._spelling(reply.answer)

    def derived(self, reply: Reply) -> str | None:
        """The answer of a deriver's reply if its derivation passes the check, else None."""
        if not (isinstance(reply, Derivation) and self.check(reply).passed) or self._key(reply.answer) is None:
            return None
        return self.consensus if differ_by_percent_sign(reply.answer, self.consensus) else reply.answer

    # -- what is behind it --------------------------------------------------------------------------------------------

    def certificate(self, answer: str | None) -> Certificate:
        """The certificate of an answer: its own, or that of any spelling in the pool that votes with it."""
        key = self._key(answer)
        own = self._certify(answer)
        if own.certified is not False or key not in self.vote.classes or key is None:
            return own
        return self._class(key)[1]

    def _usable(self, reply: Reply) -> Reply:
        """The reply as it counts: a verdict for no candidate, or for one without an answer, is an abstention."""
        if not isinstance(reply, Verdict) or reply.preferred in self._voters:
            return reply
        return Abstention(f"preferred={reply.preferred} is not a candidate with an answer")

    def _preferred_index(self, verdict: Verdict) -> int:
        if self.settings.preference == "global" or verdict.scores is None or self._supports(verdict.preferred):
            return verdict.preferred
        certified = [index for index in range(len(self.question.answers)) if self._supports(index)]
        return max(certified, key=verdict.scores.__getitem__, default=verdict.preferred)

    def check(self, derivation: Derivation) -> CheckResult:
        """The check of a derivation at the level of the settings, made once."""
        if derivation not in self._checks:
            self._checks[derivation] = check_derivation(derivation, self.question.text, self.settings.derivation)
        return self._checks[derivation]

    def _certify(self, answer: str | None) -> Certificate:
        """The certificate of a spelling; where a derivation certifies, the evidence never does."""
        if self.type.way == "derivation":
            return _BY_DERIVATION
        if type(answer) is not str:
            return self._sought(answer)
        return self._own[answer] if answer in self._own else self._own.setdefault(answer, self._sought(answer))

    def _sought(self, answer: str | None) -> Certificate:
        if self.refuses(answer):
            return _REFUSAL if self._refusals_vote else _NO_VOTE
        return self._evidence.certify(answer, self._key(answer))

    def votes(self) -> dict[str, int]:
        """How many candidates give each answer, by the spelling that ships, most votes first."""
        return dict(self.standings)

    # -- what a consulted certificate is asked, see `eldgr_dspy.rule.certifying` ---------------------------------------

    def to_certify(self, reply: object = None) -> tuple[str, ...]:
        """Return the answers that a consulted certificate is asked about; none without such a certificate.

        They are the first spelling of each class of the pool; given a repairer's reply, its answer if its class is new.
        """
        if not self._evidence.is_consulted or self.type.way == "derivation":
            return ()
        answers = {key: next(iter(spellings)) for key, spellings in self._spellings.items()}
        if reply is not None:
            repair = reply.answer if isinstance(reply, Repair) else None
            answers = {key: repair} if repair and (key := self._key(repair)) and key not in answers else {}
        return tuple(answer for answer in answers.values() if not self.refuses(answer))

    def supply(self, answer: str, certificate: Certificate) -> None:
        """Take the certificate of an answer; it holds for the answer's class."""
        self._own.clear()
        if (key := self._key(answer)) is not None:
            self._evidence.supply(key, certificate)

    def passages_for(self, answer: str) -> tuple[Passage, ...]:
        """The passages that may certify an answer: those that only repeat its own candidate are blank."""
        return self._evidence.passages_for(self._key(answer))

    def _supports(self, index: int) -> bool:
        return index in self._voters and self._class(self._voters[index])[1].certified is True

    def _key(self, answer: str | None) -> str | None:
        if type(answer) is not str:
            return self._read(answer)
        return self._keys[answer] if answer in self._keys else self._keys.setdefault(answer, self._read(answer))

    def _read(self, answer: str | None) -> str | None:
        class_ = None if not self._refusals_vote and self.refuses(answer) else self._grouping.class_of(answer)
        return class_.key if class_ else None

    def _spelling(self, answer: str) -> str:
        """The spelling of a repair that ships: the pool's if it alone is certified as written, else its own."""
        key, own = self._key(answer), self._certify(answer)
        if own.certified is None or key is None:
            return answer
        if key in self._spellings and not (own.certified and is_as_written(own)):
            spelling, certificate = self._class(key)
            return spelling if certificate.certified else answer
        plain = strip_answer(answer)  # without links and other markup, which no certificate covers
        return plain if own.certified and self._key(plain) == key else answer

    @cached_property
    def _spellings(self) -> Mapping[str, Mapping[str, None]]:
        spellings: dict[str, dict[str, None]] = {}
        for answer, key in zip(self.question.answers, self.vote.classes, strict=True):
            if key is not None:
                spellings.setdefault(key, {})[answer or ""] = None
        return spellings

    def _answer_of(self, key: str) -> str:
        """A class's spelling that ships; if there is only one, the evidence is not searched."""
        first, *others = self._spellings[key]
        return self._class(key)[0] if others else first

    def _class(self, key: str) -> tuple[str, Certificate]:
        """The first spelling of a class that the evidence has as written, else its first one, and its certificate."""
        if key not in self._classes:
            certificates = {spelling: self._certify(spelling) for spelling in self._spellings[key]}
            verbatim = (spelling for spelling, own in certificates.items() if own.certified and is_as_written(own))
            ships = next(verbatim, next(iter(certificates)))
            strongest = min(certificates.values(), key=lambda own: (not own.certified, own.certified is False))
            self._classes[key] = ships, certificates[ships] if certificates[ships].certified else strongest
        return self._classes[key]

    # -- recording the choice -----------------------------------------------------------------------------------------

    def rule(self, name: str) -> Rule:
        """The rule of that name, see `rule_named`, under the setting `consult` (which concerns EL-DGR alone)."""
        rule, asks_all = rule_named(name), self.settings.consult == "always" and name_in(name) == "eldgr"
        return always(rule, lambda case: case.roles()) if asks_all else rule

    def record(self, choice: Choice, replies: Mapping[Role, Reply]) -> Decision:
        """Return the whole decision: the choice with everything that was asked and said."""
        replies = {role: self._usable(reply) for role, reply in replies.items()}
        certified, witness = self._support(choice.answer, replies)
        verdict = replies.get("judge")
        return Decision(
            answer=choice.answer,
            branch=choice.branch,
            reason=reason_of(self, choice, certified, empty=not self.question.answers, with_roles=bool(replies)),
            certified=certified,
            witness=witness.witness if witness else None,
            consensus=self.consensus,
            tie=self.vote.tie,
            preference=self._preference(choice, verdict),
            repair=next((r.answer for r in replies.values() if isinstance(r, Repair | Derivation)), None),
            consulted=tuple(replies),
            abstentions={role: r.reason for role, r in replies.items() if isinstance(r, Abstention)},
            ranking=self.ranking(replies),
            notes=tuple(self._notes(replies)),
        )

    def _preference(self, choice: Choice, verdict: Reply | None) -> int | None:
        """The index that the judge preferred, or the one its scores give if the setting lets that ship."""
        if not isinstance(verdict, Verdict):
            return None
        index = self._preferred_index(verdict)
        return index if self.same(choice.answer, self._answer_of(self._voters[index])) else verdict.preferred

    def _notes(self, replies: Mapping[Role, Reply]) -> Iterator[str]:
        yield from self.vote.notes
        if self.type.way == "evidence":
            yield from self._notes_on_evidence
        if isinstance(derivation := replies.get("deriver"), Derivation):
            if not (check := self.check(derivation)).passed:
                yield f"{REFUSAL_NOTE}{check.reason}"
            elif (own := self._grouping.class_of(derivation.answer)) and own.note and own.key not in self.vote.classes:
                yield f"{derivation.answer!r:.60}: {own.note}"

    @cached_property
    def _notes_on_evidence(self) -> tuple[str, ...]:
        notes = list[str]()
        if self.n_certified > 1:
            notes.append(f"{self.n_certified} different answers are certified")
        if self.consensus is not None and not self.certified(self.consensus):
            notes.append(f"consensus: {self.certificate(self.consensus).reason}")
        if self._evidence.own_texts:
            notes.append("a passage is a candidate's own text and does not certify its answer")
        return tuple(notes)

    @property
    def n_certified(self) -> int:
        """How many classes of the pool the evidence certifies; several contradict each other."""
        return sum(1 for certified in self._certified_classes.values() if certified)

    @cached_property
    def _voters(self) -> Mapping[int, str]:
        return {index: key for index, key in enumerate(self.vote.classes) if key is not None}

    @cached_property
    def _certified_classes(self) -> Mapping[str, bool | None]:
        return {key: self._class(key)[1].certified for key in self.vote.classes if key is not None}

    def _support(self, answer: str | None, replies: Mapping[Role, Reply]) -> tuple[bool | None, Certificate | None]:
        if self.type.way == "evidence":
            certificate = self.certificate(answer)
            return certificate.certified, certificate
        derivation = self._derived_from(replies)
        return derivation is not None and self.same(answer, derivation), None

    def _derived_from(self, replies: Mapping[Role, Reply]) -> str | None:
        """The answer of a checked derivation; where the evidence certifies, a derivation never does."""
        reply = replies.get("deriver")
        return self.derived(reply) if self.type.way == "derivation" and reply else None

    def ranking(self, replies: Mapping[Role, Reply], scores: Sequence[float | None] | None = None) -> tuple[int, ...]:
        """Return the pool indices, best first; see `eldgr_dspy.rule.ranking`.

        Without scores, or if all are None, the judge's scalars are the auxiliary scores of the candidates.
        """
        derivation = self._derived_from(replies)
        supports: set[str | None] = {
            key
            for key, certified in self._certified_classes.items()
            if certified is not False and not self.refuses(self._answer_of(key))
        }
        if derivation is not None:
            supports.add(self._key(derivation))
        classes, verdict = self.vote.classes, replies.get("judge")
        if scores is None or all(score is None for score in scores):
            scores = verdict.scores if isinstance(verdict, Verdict) else None
        return rank([key in supports for key in classes], [key == self.vote.winner for key in classes], scores)
