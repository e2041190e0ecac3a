"""One question as a rule sees it: classes of answers, their certificates, and what a reply comes to.

`Case` puts a question and the settings behind the protocol that the rules of `eldgr_dspy.decision` ask, and writes down
what a rule chose. Certificates belong to classes: a class is certified if any of its spellings is, and the spelling
that stands in the evidence ships. Standard library alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from eldgr_dspy.answers import answer_class, number_in
from eldgr_dspy.certificates import Certificate, Evidence, Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Reply, Verdict, show_passage
from eldgr_dspy.decision import Choice, Decision, Rule, always
from eldgr_dspy.derivations import Checked, check_derivation
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.ranking import rank
from eldgr_dspy.rules import rule_named
from eldgr_dspy.voting import majority
from eldgr_dspy.words import Role, Task

_BY_DERIVATION = Certificate(False, "in arithmetic a derivation certifies, not the evidence")


def is_as_written(certificate: Certificate) -> bool:
    """Return whether an answer stands in the evidence as it is spelled; without a witness a certificate says so."""
    return certificate.witness is None or certificate.witness.level == "exact"


class Case:
    """A question under settings: implements the protocol that rules ask, and writes down what a rule chose."""

    def __init__(self, question: Question, settings: Settings | None = None) -> None:
        self.question = question
        self.settings = settings or Settings()
        self.vote = majority(question.answers, question.task)
        self._evidence = Evidence(question.passages, self.settings.certificate)
        self._found: dict[str, tuple[str, Certificate]] = {}
        self._sought: dict[str | None, Certificate] = {}
        self._checked: dict[Derivation, Checked] = {}

    # -- what the rules ask -------------------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The declared task, the only thing by which a rule branches."""
        return self.question.task

    @property
    def first(self) -> str | None:
        """The first candidate's answer, as it is."""
        return self.question.answers[0] if self.question.answers else None

    @cached_property
    def consensus(self) -> str | None:
        """The majority's answer in the spelling that ships, None where nobody votes."""
        return None if self.vote.winner is None else self._shipped(self.vote.winner)

    @property
    def contested(self) -> bool:
        """Whether there is more than one class of answers."""
        return self.vote.n_classes > 1

    @property
    def repairable(self) -> bool:
        """Whether repairer or deriver may be asked: not of an empty pool, and of one class as the settings say."""
        if self.vote.n_classes != 1:
            return bool(self.question.answers)
        default = "repair" if self.task == "retrieval" else "skip"
        return (self.settings.homogeneous or default) == "repair"

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
        heard = self._heard(reply)
        return self._answer_at(heard.preferred) if isinstance(heard, Verdict) else None

    def preferred(self, reply: Reply) -> str | None:
        """The answer that a judge's reply comes to under the setting `preference`; None where it abstained."""
        heard = self._heard(reply)
        return self._answer_at(self._preferred_index(heard)) if isinstance(heard, Verdict) else None

    def repaired(self, reply: Reply) -> str | None:
        """The span that a repairer's reply gives, None where it abstained or the span shows nothing."""
        if not isinstance(reply, Repair) or self._key(reply.answer) is None:
            return None
        return self._spelling(reply.answer)

    def derived(self, reply: Reply) -> str | None:
        """The answer of a deriver's reply if its derivation passes the check, else None."""
        if not (isinstance(reply, Derivation) and self.checked(reply).passed):
            return None
        return self.consensus if self._differs_by_a_percent_sign(reply.answer) else reply.answer

    # -- what is behind it --------------------------------------------------------------------------------------------

    def certificate(self, answer: str | None) -> Certificate:
        """The certificate of an answer: its own, or that of any spelling in the pool that votes with it."""
        key = self._key(answer)
        own = self._certify(answer)
        if own.certified is not False or key not in self.vote.classes or key is None:
            return own
        return self._class(key)[1]

    def _heard(self, reply: Reply) -> Reply:
        """A reply as it counts: a verdict that prefers no candidate, or one without an answer, is an abstention."""
        if not isinstance(reply, Verdict) or reply.preferred in self._voters:
            return reply
        return Abstention(f"preferred={reply.preferred} is no candidate with an answer")

    def _preferred_index(self, verdict: Verdict) -> int:
        if self.settings.preference == "global" or verdict.scores is None or self._supports(verdict.preferred):
            return verdict.preferred
        certified = [index for index in range(len(self.question.answers)) if self._supports(index)]
        return max(certified, key=verdict.scores.__getitem__, default=verdict.preferred)

    def _answer_at(self, index: int) -> str:
        return self._shipped(self._voters[index])

    def checked(self, derivation: Derivation) -> Checked:
        """The check of a derivation at the level of the settings, made once."""
        if derivation not in self._checked:
            self._checked[derivation] = check_derivation(derivation, self.question.text, self.settings.derivation)
        return self._checked[derivation]

    def _certify(self, answer: str | None) -> Certificate:
        """The certificate of a spelling, sought in the evidence once; in arithmetic no evidence certifies."""
        if self.task == "arithmetic":
            return _BY_DERIVATION
        if answer not in self._sought:
            self._sought[answer] = self._evidence_apart_from(self._key(answer)).certify(answer, self.question.text)
        return self._sought[answer]

    @cached_property
    def _own_texts(self) -> Mapping[str | None, frozenset[int]]:
        """For each class, the passages that are nothing but the text of one of its candidates.

        Evidence is what was retrieved: no candidate's own text certifies its answer. It still certifies another's, so
        that a candidate which quotes a passage takes no certificate from anybody else.
        """
        found: dict[str | None, frozenset[int]] = {}
        texts: dict[str, set[str]] = {}
        for text, key in zip(self.question.texts, self.vote.classes, strict=False):
            if key is not None:
                texts.setdefault(text.strip(), set()).add(key)
        for index, passage in enumerate(self.question.passages if texts else ()):
            for form in (passage.text.strip(), show_passage(passage.title, passage.text).strip()):
                for key in texts.get(form, ()):
                    if key != self._key(form):
                        found[key] = found.get(key, frozenset()) | {index}
        return found

    def _evidence_apart_from(self, key: str | None) -> Evidence:
        apart = self._own_texts.get(key)
        if not apart:
            return self._evidence
        passages = (Passage("", "") if i in apart else p for i, p in enumerate(self.question.passages))
        return Evidence(tuple(passages), self.settings.certificate)

    def _differs_by_a_percent_sign(self, derived: str) -> bool:
        """Whether consensus is the derived number but for a percent sign: 20%, 20 and 0.2 say the same."""
        one, other = number_in(derived), None if self.consensus is None else number_in(self.consensus)
        if one is None or other is None or one.percent == other.percent:
            return False
        percent, plain = (one.value, other.value) if one.percent else (other.value, one.value)
        return plain in (percent, percent / 100)

    def _supports(self, index: int) -> bool:
        return index in self._voters and self._class(self._voters[index])[1].certified is True

    def _key(self, answer: str | None) -> str | None:
        found = answer_class(answer, self.task)
        return found.key if found else None

    def _spelling(self, answer: str) -> str:
        """The spelling of a repair that ships: its own if it stands in the evidence as written, else the pool's."""
        key, own = self._key(answer), self._certify(answer)
        if own.certified is None or (own.certified and is_as_written(own)) or key is None:
            return answer
        spelling, found = self._class(key) if key in self._spellings else (answer, own)
        return spelling if found.certified else answer

    @cached_property
    def _spellings(self) -> Mapping[str, Mapping[str, None]]:
        """The spellings of each class, in pool order."""
        found: dict[str, dict[str, None]] = {}
        for answer, key in zip(self.question.answers, self.vote.classes, strict=True):
            if answer and key is not None:
                found.setdefault(key, {})[answer] = None
        return found

    def _shipped(self, key: str) -> str:
        """A class's spelling that ships; where there is but one, nothing is sought in the evidence to tell."""
        first, *others = self._spellings[key]
        return self._class(key)[0] if others else first

    def _class(self, key: str) -> tuple[str, Certificate]:
        """A class's spelling that ships, with the class's certificate.

        It is the earliest that stands in the evidence as written, else the earliest.
        """
        if key not in self._found:
            tried = {spelling: self._certify(spelling) for spelling in self._spellings[key]}
            written = (one for one, found in tried.items() if found.certified and is_as_written(found))
            ships = next(written, next(iter(tried)))
            strongest = min(tried.values(), key=lambda found: (not found.certified, found.certified is False))
            self._found[key] = ships, tried[ships] if tried[ships].certified else strongest
        return self._found[key]

    # -- writing down what was chosen ---------------------------------------------------------------------------------

    def rule(self, name: str) -> Rule:
        """The rule of that name, see `rule_named`, under the setting `consult` (which concerns EL-DGR alone)."""
        rule = rule_named(name)
        return (
            always(rule, lambda case: case.roles()) if name == "eldgr" and self.settings.consult == "always" else rule
        )

    def record(self, choice: Choice, replies: Mapping[Role, Reply]) -> Decision:
        """Return the whole decision: the choice with everything that was asked and said."""
        replies = {role: self._heard(reply) for role, reply in replies.items()}
        certified, witness = self._support(choice.answer, replies)
        verdict = replies.get("judge")
        return Decision(
            answer=choice.answer,
            branch=choice.branch,
            reason=self._reason(choice, certified, replies),
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
        """The index that the judge preferred, or that its scores came to where the setting let that ship."""
        if not isinstance(verdict, Verdict):
            return None
        index = self._preferred_index(verdict)
        return index if self.same(choice.answer, self._answer_at(index)) else verdict.preferred

    def _notes(self, replies: Mapping[Role, Reply]) -> Iterator[str]:
        """What one who reads the decision should know beside it, each a phrase."""
        yield from self.vote.notes
        if self.task == "retrieval":
            yield from self._notes_on_evidence
        derivation = replies.get("deriver")
        if isinstance(derivation, Derivation) and not self.checked(derivation).passed:
            yield f"the derivation is not accepted: {self.checked(derivation).reason}"

    @cached_property
    def _notes_on_evidence(self) -> tuple[str, ...]:
        certified, notes = sum(1 for found in self._certified_classes.values() if found), list[str]()
        if certified > 1:
            notes.append(f"{certified} different answers are certified")
        if self.consensus is not None and not self.certified(self.consensus):
            notes.append(f"consensus: {self.certificate(self.consensus).reason}")
        if self._own_texts:
            notes.append("a passage is a candidate's own text and does not certify its answer")
        return tuple(notes)

    @cached_property
    def _voters(self) -> Mapping[int, str]:
        """The candidates that have an answer by pool index, each with its class."""
        return {index: key for index, key in enumerate(self.vote.classes) if key is not None}

    @cached_property
    def _certified_classes(self) -> Mapping[str | None, bool | None]:
        """The classes of the pool, each with whether it is certified."""
        return {key: self._class(key)[1].certified for key in self.vote.classes if key is not None}

    def _support(self, answer: str | None, replies: Mapping[Role, Reply]) -> tuple[bool | None, Certificate | None]:
        if self.task == "retrieval":
            found = self.certificate(answer)
            return found.certified, found
        derived = self._derived_from(replies)
        return derived is not None and self.same(answer, derived), None

    def _derived_from(self, replies: Mapping[Role, Reply]) -> str | None:
        """The answer of a checked derivation; in retrieval none certifies, whoever asked for it."""
        reply = replies.get("deriver")
        return self.derived(reply) if self.task == "arithmetic" and reply else None

    def _reason(self, choice: Choice, certified: bool | None, replies: Mapping[Role, Reply]) -> str:
        if not self.question.answers:
            return "empty_pool"
        if choice.branch == "first":
            return "first"
        if choice.branch == "judge":
            return "preference_certified" if certified else "preference"
        if choice.branch == "repair":
            return "derivation_checked" if self.task == "arithmetic" else "repair_certified"
        return self._reason_of_consensus(certified, replies)

    def _reason_of_consensus(self, certified: bool | None, replies: Mapping[Role, Reply]) -> str:
        if self.consensus is None:
            return "no_answers"
        if self.task == "arithmetic" and certified:
            return "derivation_agrees"
        if certified is not False:
            return "consensus_certified" if certified else "consensus_inapplicable"
        return "default" if self.contested or replies else "homogeneous"

    def ranking(self, replies: Mapping[Role, Reply], scores: Sequence[float | None] | None = None) -> tuple[int, ...]:
        """Return the pool indices, best first; see `eldgr_dspy.ranking`.

        Args:
            replies: What the roles replied that were asked.
            scores: The auxiliary score of each candidate, None where undefined. The judge's scalars take their place
                where no scores are given, or none of them is defined.
        """
        derived = self._derived_from(replies)
        marks = self._certified_classes.items() if self.task == "retrieval" else ()
        supported = {key for key, certified in marks if certified is not False}
        if derived is not None:
            supported.add(self._key(derived))
        classes, verdict = self.vote.classes, replies.get("judge")
        if scores is None or all(score is None for score in scores):
            scores = verdict.scores if isinstance(verdict, Verdict) else None
        return rank([key in supported for key in classes], [key == self.vote.winner for key in classes], scores)
