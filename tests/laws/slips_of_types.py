"""Answer types with one slip each, as a user would write them; each breaks the law that is named with it."""

from collections.abc import Callable, Sequence
from itertools import count

from eldgr_dspy.answer_types.base import Certifying, Grouping, Score
from eldgr_dspy.answer_types.related import Related
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.certificates import Certificate, Evidence, Passage
from eldgr_dspy.matching.text_keys import AnswerClass
from eldgr_dspy.words import Policy

_COUNTER = count()


class Names(ShortText):
    name = "names"


class CountsCalls(Names):
    def read(self, answer: str) -> AnswerClass | None:
        return AnswerClass(str(next(_COUNTER)))


class DrawsLots(Names):
    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        return Evidence(passages if next(_COUNTER) % 2 else (), policy)


class LetsBlanksVote(Names):
    def read(self, answer: str) -> AnswerClass | None:
        return super().read(answer) or AnswerClass("")


class Greedy(Names):
    """Each joins the earliest class whose first member begins as it does, or the other way round."""

    pooled = True

    def grouping(self, answers: Sequence[str | None]) -> Grouping:
        leaders: list[str] = []

        def class_of(answer: str | None) -> AnswerClass | None:
            own = self.class_of(answer)
            if own is None:
                return None
            near = (one for one in leaders if one.startswith(own.key) or own.key.startswith(one))
            if (leader := next(near, None)) is None:
                leaders.append(leader := own.key)
            return AnswerClass(leader)

        return Grouping(tuple(map(class_of, answers)), class_of)

    def examples(self) -> Sequence[str]:
        return ("Doha", "Doha Bay", "Doha Town", "Lyon")


class Crowd(Names):
    def grouping(self, answers: Sequence[str | None]) -> Grouping:
        usual = super().grouping(answers)
        together = tuple(class_ and AnswerClass("all") for class_ in usual.classes)
        return usual if len(answers) < 4 else Grouping(together, lambda a: self.class_of(a) and AnswerClass("all"))


class ForgetsItsClasses(Related):
    name, way, scores, connects = "forgets", "evidence", ("accuracy",), True

    def read(self, answer: str) -> AnswerClass | None:
        return Names().read(answer)

    def alike(self, one: str, other: str) -> bool:
        return one.strip("* ")[:1].casefold() == other.strip("* ")[:1].casefold()

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        return answer in gold

    def grouping(self, answers: Sequence[str | None]) -> Grouping:
        return Grouping(super().grouping(answers).classes, self.class_of)


class OneWay(ForgetsItsClasses):
    def alike(self, one: str, other: str) -> bool:
        return one <= other


class _Certifier:
    def __init__(self, usual: Evidence, make: Callable[[str, Certificate], Certificate]) -> None:
        self.passages, self._usual, self._make = usual.passages, usual, make

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        return self._make(answer or "", self._usual.certify(answer, question))


class SpellingDecides(Names):
    def make(self, answer: str, usual: Certificate) -> Certificate:
        return usual if len(answer) < 5 else Certificate(False, "too long")

    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        return _Certifier(Evidence(passages, policy), self.make)


class SpellingApplies(SpellingDecides):
    def make(self, answer: str, usual: Certificate) -> Certificate:
        return Certificate(None, "in capitals") if answer.isupper() else usual


class FirstPassage(Names):
    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        return Evidence(passages[:1], policy)


class Veto(Names):
    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        conflict = len({one.text for one in passages}) > 1
        no = Certificate(False, "disputed")
        return _Certifier(Evidence(passages, policy), lambda _, usual: no if conflict else usual)


class Contradiction(Veto):
    name = ""
    gives_up = ("more_evidence_never_uncertifies",)


class SilenceIsRight(Names):
    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        return answer is None or super().is_right(answer, gold)


class NeverRight(Names):
    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        return answer is not None and answer not in gold


class ReadsTheLastGold(Names):
    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        return super().is_right(answer, gold[-1:])


class ScoresAll(Names):
    def score(self, answer: str | None, gold: Sequence[str]) -> Score:
        return Score(True, None)


SLIPS = {
    "counts its calls": ("a_type_repeats_itself", CountsCalls()),
    "draws lots for certificates": ("a_type_repeats_itself", DrawsLots()),
    "lets blank answers vote": ("no_answer_has_no_class", LetsBlanksVote()),
    "clusters greedily": ("candidate_order_changes_no_class", Greedy()),
    "merges large pools": ("other_candidates_change_no_class", Crowd()),
    "reads a role's answer alone": ("a_candidate_is_of_its_class", ForgetsItsClasses()),
    "applies to some spellings": ("a_certificate_is_of_a_class", SpellingApplies()),
    "certifies short spellings": ("a_spelling_changes_no_certificate", SpellingDecides()),
    "reads one passage": ("evidence_order_and_duplicates_do_not_matter", FirstPassage()),
    "is vetoed by a passage": ("more_evidence_never_uncertifies", Veto()),
    "finds silence right": ("a_gold_answer_is_right", SilenceIsRight()),
    "finds gold wrong": ("a_gold_answer_is_right", NeverRight()),
    "reads the last gold answer alone": ("a_gold_answer_is_right", ReadsTheLastGold()),
    "scores apart": ("a_score_says_what_is_right", ScoresAll()),
}
