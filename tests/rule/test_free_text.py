"""Free text: which answers vote together, which are certified, and what the model is asked for that."""

import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.entailment.about import LONGEST, MOST_CLAIMS, MOST_WINDOWS
from eldgr_dspy.answer_types.entailment.readings import Pair
from eldgr_dspy.answer_types.free_text import FreeText
from eldgr_dspy.cases import Case
from eldgr_dspy.certificates import Certificate, Passage, holds
from eldgr_dspy.consultations import Repair, Reply, Verdict
from eldgr_dspy.decision import drive
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LAWS
from eldgr_dspy.questions import Question
from eldgr_dspy.structured import Structured
from eldgr_dspy.words import Role
from tests.bag_of_words import CONTRADICTS, ENTAILS, NEUTRAL, BagOfWords, YesMan
from tests.scorers import trained_nli

QUESTION = "What is it?"  # every answer answers it, as the bag of words has it


def case_of(
    answers: Sequence[str | None],
    passages: Sequence[str] = (),
    nli: Any = None,
    question: str = QUESTION,
    **settings: Any,
) -> Case:
    """The case of a question, under a bag of words unless another model is given."""
    kind = FreeText(nli or BagOfWords(), **settings)
    evidence = tuple(Passage("", text) for text in passages)
    return Case(Question(question, kind.name, tuple(answers), passages=evidence, kind=kind))


def partition(case: Case) -> set[frozenset[str]]:
    classes: dict[str, set[str]] = {}
    for answer, key in zip(case.question.answers, case.vote.classes, strict=True):
        if answer and key:
            classes.setdefault(key, set()).add(answer)
    return {frozenset(members) for members in classes.values()}


def certificate(answer: str, *passages: str, **given: Any) -> Certificate:
    return case_of([answer], passages, **given).certificate(answer)


# --- the tests' trained model -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained() -> Any:
    from eldgr_dspy.programs.scoring.nli import load_nli

    return load_nli(trained_nli())


# The trained model knows facts, not questions: it reads a question that states a fact, in the place of a goal.
FACT = "Is it so that Doha is the capital of Qatar?"
TOLD = ("Doha is the capital of Qatar.", "The capital of Qatar is Doha.", "The capital of Qatar is Paris.")


def test_the_trained_model_puts_paraphrases_together_and_certifies_the_one_that_a_passage_entails(trained: Any) -> None:
    evidence = ["Ben has 5 apples.", "The capital of Qatar is Doha. Yes."]
    case = case_of([TOLD[2], *TOLD], evidence, trained, FACT, goal="{}")
    assert partition(case) == {frozenset(TOLD[:2]), frozenset(TOLD[2:])}
    found = case.certificate(TOLD[0])
    assert found.certified
    assert found.witness is not None
    assert (found.witness.passage, found.witness.text, found.witness.level) == (1, evidence[1], "entailed")
    assert holds(found.witness, case.question.passages)
    assert not case.certified(TOLD[2])


def test_a_certified_preference_of_the_judge_ships_under_the_trained_model(trained: Any) -> None:
    case = case_of([TOLD[2], TOLD[2], TOLD[0]], [TOLD[1]], trained, FACT, goal="{}")
    replies = dict[Role, Reply]()
    steps = case.rule("eldgr")(case)
    decision = case.record(drive(steps, lambda role: replies.setdefault(role, Verdict(2))), replies)
    assert (decision.answer, decision.branch, decision.certified) == (TOLD[0], "judge", True)


# --- classes ----------------------------------------------------------------------------------------------------------


def test_one_way_entailment_is_not_enough() -> None:
    assert len(partition(case_of(["red apples fall", "apples fall"]))) == 2
    assert len(partition(case_of(["apples fall", "Fall the apples"]))) == 1


def test_short_answers_are_compared_given_the_question() -> None:
    answers = ["Doha.", "Doha is the capital of Qatar."]
    assert len(partition(case_of(answers, question="What is the capital of Qatar?"))) == 1
    assert len(partition(case_of(answers, question="Which city?"))) == 2


def table(likes: set[frozenset[str]], contradicted: set[frozenset[str]] = frozenset()) -> Any:  # type: ignore[assignment]
    """A user's function that finds these pairs alike, and those contradicted."""

    def read(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        said = list[tuple[float, ...]]()
        for pair in pairs:
            both = frozenset(text.removeprefix(QUESTION).strip() for text in pair)
            alike = len(both) == 1 or both in likes
            said.append(CONTRADICTS if both in contradicted else ENTAILS if alike else NEUTRAL)
        return said

    return read


WORDS = ("apple", "berry", "cherry", "damson", "elder")
PAIRS = [frozenset(pair) for at, pair in enumerate((a, b) for a in WORDS for b in WORDS if a < b)]


def test_a_chain_is_one_class_and_falls_apart_where_a_pair_in_it_is_contradicted() -> None:
    chain = {frozenset({"apple", "berry"}), frozenset({"berry", "cherry"})}
    pool = ["apple", "berry", "cherry", "damson"]
    assert partition(case_of(pool, nli=table(chain))) == {frozenset(pool[:3]), frozenset(pool[3:])}
    broken = case_of(pool, nli=table(chain, {frozenset({"apple", "cherry"})}))
    assert partition(broken) == {frozenset({word}) for word in pool}


@given(st.sets(st.sampled_from(PAIRS)), st.sets(st.sampled_from(PAIRS)), st.permutations(WORDS), st.data())
def test_classes_do_not_depend_on_the_order_of_answers(
    likes: set[frozenset[str]], against: set[frozenset[str]], order: list[str], data: st.DataObject
) -> None:
    nli = table(likes, against)
    pool = order[: data.draw(st.integers(1, 5))]
    assert partition(case_of(pool, nli=nli)) == partition(case_of(sorted(pool), nli=nli))


def test_a_repair_joins_a_class_only_if_it_is_like_all_its_members() -> None:
    likes = {frozenset(pair) for pair in (("apple", "berry"), ("apple", "cherry"), ("berry", "damson"))}
    case = case_of(["apple", "berry"], nli=table(likes | {frozenset({"cherry", "berry"})}))
    assert case.same("cherry", "apple")
    case = case_of(["apple", "berry"], nli=table(likes))
    assert not case.same("cherry", "apple")
    assert not case.same("damson", "berry")
    assert case.same("elder", "elder")


HARD = [
    ("The dose is 5 mg.", "The dose is 5 g."),
    ("It is 5 km away.", "It is 6 km away."),
    ("It costs $5.", "It costs €5."),
    ("It is -5 degrees.", "It is 5 degrees."),
    ("It costs 5%.", "It costs 5."),
    ("It was on 3 May 1976.", "It was on 3 June 1976."),
    ("The drug is safe.", "The drug is not safe."),
    ("The drug is safe.", "The drug isn't safe."),
    ("The drug is safe.", "The drug may be safe."),
    ("You can go.", "You must go."),
    ("The winner is Ada.", "The winner is Eva."),
    ("Doha.", "Dubai."),
    ("Paul is a nurse.", "Ada is a nurse."),
    ("It cost $5m.", "It cost $5bn."),
    ("The town has 5k people.", "The town has 5 people."),
    ("About one million came.", "About one billion came."),
]
SOFT = [
    ("It was on 3 May 1976.", "It was on 1976-05-03."),
    ("It costs $1,000.", "It costs 1000 dollars."),
    ("She paid 5 per cent.", "She paid 5%."),
    ("five apples", "5 apples"),
    ("The winner is Ada.", "Ada has won."),
    ("It costs ５ €.", "It costs 5 euros."),
]


@pytest.mark.parametrize(("one", "other"), HARD)
def test_answers_with_other_hard_keys_are_apart_and_uncertified_though_the_model_says_yes(one: str, other: str) -> None:
    """Numbers and units, dates, negation, modality, names."""
    assert len(partition(case_of([one, other], nli=YesMan()))) == 2
    assert certificate(one, f"{other} So they say.", nli=YesMan()).certified is False
    assert certificate(one, f"{one} So they say.", nli=YesMan()).certified


@pytest.mark.parametrize(("one", "other"), SOFT)
def test_hard_keys_are_read_not_spelled(one: str, other: str) -> None:
    assert len(partition(case_of([one, other], nli=YesMan()))) == 1


def test_answers_may_repeat_the_question_but_not_choose_differently_in_it() -> None:
    question = "Did Ada or Eva win in 1976?"
    assert len(partition(case_of(["Ada.", "Ada won in 1976."], nli=YesMan(), question=question))) == 1
    assert len(partition(case_of(["Ada.", "Eva."], nli=YesMan(), question=question))) == 2


# --- certificates -----------------------------------------------------------------------------------------------------


def test_every_claim_needs_a_window_and_leaving_one_out_buys_no_certificate_for_the_rest() -> None:
    """Partial answers: the shorter one is certified alone, in a class of its own."""
    whole, part = "Apples fall down. Apples taste good.", "Apples fall down."
    case = case_of([whole, whole, part], ["In autumn apples fall down."])
    assert [case.certified(whole), case.certified(part)] == [False, True]
    assert case.certificate(whole).reason.startswith("no passage entails claim 2 of 2")
    assert not case.same(whole, part)
    assert case.consensus == whole


def test_claims_may_have_windows_of_several_passages_but_one_claim_needs_one() -> None:
    """A claim that takes two passages is not certified."""
    passages = ("Apples fall down, they say.", "Apples taste good, they say.")
    assert certificate("Apples fall down. Apples taste good.", *passages).certified
    assert certificate("Apples fall down and taste good.", *passages).certified is False


def test_the_witness_is_the_window_of_the_weakest_claim() -> None:
    class Graded(BagOfWords):
        def reading(self, premise: str, hypothesis: str) -> tuple[float, ...]:
            said = super().reading(premise, hypothesis)
            return (0.0, 0.05, 0.95) if said == ENTAILS and "good" in hypothesis else said

    passages = ("Apples fall down, they say.", "Apples taste good, they say.")
    found = certificate("Apples fall down. Apples taste good.", *passages, nli=Graded())
    assert found.witness is not None
    assert (found.witness.passage, found.witness.text) == (1, passages[1])
    assert certificate("Apples taste good.", *passages, nli=Graded(), calibration=0.96).certified is False


def test_a_true_answer_to_another_question_is_not_certified() -> None:
    found = certificate("Apples fall down.", "Apples fall down, they say.", question="Which cities have airports?")
    assert (found.certified, found.reason) == (False, "the claims do not answer the question")


def test_a_certified_member_ships_never_another_of_its_class() -> None:
    members = ["Down fall the apples.", "Apples fall down."]

    class Particular(BagOfWords):
        def reading(self, premise: str, hypothesis: str) -> tuple[float, ...]:
            bare = premise.startswith("In autumn") and "Down" in hypothesis
            return NEUTRAL if bare else super().reading(premise, hypothesis)

    for pool in permutations(members):
        case = case_of(pool, ["In autumn apples fall down."], Particular())
        assert len(partition(case)) == 1
        assert case.certified(members[0])  # by its class
        assert case.consensus == members[1]
        assert case.repaired(Repair(members[1])) == members[1]
        assert case.repaired(Repair(members[0])) == members[1]


def test_claims_that_lost_their_subject_are_read_with_what_is_before_them() -> None:
    nli, question = BagOfWords(), "Who is Ada?"
    answer = "A farmer near Oslo. She sells pears. Her pears taste good.\n- Red.\nBen buys some pears. They fall."
    passages = ("Bea, a farmer near Oslo, sells pears, they say.", "Ben buys some pears; they say pears fall.")
    assert certificate(answer, *passages, nli=nli, question=question).certified is False
    first, last = answer.splitlines()[0], answer.splitlines()[2]
    assert {
        f"{question} A farmer near Oslo.",
        f"{question} A farmer near Oslo. She sells pears.",
        f"{question} {first}",
        f"{question} {first}\n- Red.",
        "Ben buys some pears.",
        last,
    } == {hypothesis for batch in nli.batches for premise, hypothesis in batch if premise in passages}


LOST = [
    ("Ada is a farmer. In 1990 she won a prize.", ("Ada is a farmer, they say.", "Eva: In 1990 she won a prize.")),
    ("Doha is big. The city is made of wood.", ("Doha is big, they say.", "Oslo. The city is made of wood.")),
    ("Ada came from the town\nof Oslo in Norway.", ("Ada came from the town near Rome.", "Ben of Oslo in Norway.")),
    (
        "Ada came from the town of\nOslo in northern Norway.",
        ("Ada came from the town of Rome.", "Oslo, northern Norway."),
    ),
    (
        "Doha has wide roads\nPopulation: 5 million people",
        ("Doha has wide roads.", "Oslo. Population: 5 million people"),
    ),
]


@pytest.mark.parametrize(("answer", "passages"), LOST)
def test_a_claim_without_its_subject_is_not_certified_by_what_is_said_of_another(
    answer: str, passages: tuple[str, ...]
) -> None:
    assert certificate(answer, *passages).certified is False
    assert certificate(answer, f"{answer} So they say.").certified


def test_a_long_sentence_is_cut_between_words_and_numbers() -> None:
    for before in range(40):
        text = " ".join(["so", *["la"] * before, "the president Johnson came in 1971", *["la"] * 90])
        for answer in (
            "The president John came.",
            "The president Johnson came in 19.",
            "The president Johnson in 197.",
        ):
            assert certificate(answer, text, nli=BagOfWords(tokens=64)).certified is False
        assert certificate("The president Johnson came in 1971.", text, nli=BagOfWords(tokens=64)).certified


def test_a_part_of_a_long_sentence_does_not_certify_what_the_sentence_denies() -> None:
    text = " ".join(["it is not the case, whatever was said", *["la"] * 60, "that the drug is safe", *["la"] * 60])
    assert certificate("The drug is safe.", text, nli=BagOfWords(tokens=64)).certified is False
    assert certificate("The drug is safe.", text.replace("not", "so"), nli=BagOfWords(tokens=64)).certified


def test_a_wrapped_line_keeps_its_negation() -> None:
    assert certificate("The drug is safe.", "They say the drug is\nnot safe.").certified is False


def test_a_question_states_nothing() -> None:
    """Neither one that a passage asks, nor one that an answer repeats."""
    assert certificate("Apples fall down.", "Do apples fall down? Many ask.").certified is False
    assert certificate("Apples fall down.", "Do pears? Indeed apples fall down.").certified
    repeated = certificate("What is it?", "What is it? An apple.", nli=YesMan())
    assert (repeated.certified, repeated.reason) == (False, "the answer asks a question")


def test_lists_and_objects_are_like_no_other_answer_and_ask_no_further_call() -> None:
    nli, apples = YesMan(), Structured(["apples fall"])
    case = case_of([apples, Structured(["fall apples"]), "apples fall", "pears"], ["They say pears fall."], nli)
    assert case.certificate(apples).reason == "a list or an object is not free text"
    assert (len({*case.vote.classes}), nli.calls) == (3, 1)


def test_a_bare_yes_makes_no_claim() -> None:
    assert certificate("Yes.", "Yes, it is.", nli=YesMan()).certified is None


@pytest.mark.parametrize("answer", ["I don't know.", "Cannot be determined"])
def test_refusals_are_not_certified(answer: str) -> None:
    assert certificate(answer, f"{answer} So they say.", nli=YesMan()).certified is None
    assert case_of([answer], [f"{answer} So they say."], YesMan()).repaired(Repair("")) is None


@pytest.mark.parametrize("answer", ["...", "", "??", "🍎", " \n"])
def test_an_answer_without_claims_is_uncertified(answer: str) -> None:
    assert not certificate(answer, "🍎 Apples fall.", nli=YesMan()).certified


def test_pairs_that_the_model_cannot_read_say_nothing() -> None:
    class Blind(BagOfWords):
        def reading(self, premise: str, hypothesis: str) -> tuple[float, ...]:
            return (float("nan"),) * 3

    case = case_of(["Apples fall.", "Apples go down."], ["Apples fall, they say."], Blind())
    assert len(partition(case)) == 2
    assert case.certified("Apples fall.") is False
    assert case.certificate("Apples fall.").reason == "no passage entails claim 1 of 1"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Apples fall. " * 8_000, f"the answer is longer than {LONGEST:,} characters"),
        ("Apples fall far. " * (MOST_CLAIMS + 1), f"the answer has more than {MOST_CLAIMS} claims"),
        ("apples " * 900, "a claim, with what it leans on, is longer than the model reads beside a passage"),
    ],
)
def test_long_answers_are_uncertified_and_not_read(answer: str, reason: str) -> None:
    nli = BagOfWords()
    case = case_of([answer, "Pears fall."], ["Apples fall far, they say."], nli)
    assert case.certificate(answer) == Certificate(False, reason)
    assert len(partition(case)) == 2
    assert all(len(premise) + len(hypothesis) < 3_000 for batch in nli.batches for premise, hypothesis in batch)


def test_a_passage_that_only_repeats_an_answer_of_the_class_does_not_certify_it() -> None:
    answers = ["Apples fall down.", "Down fall the apples."]
    assert case_of(answers, ["APPLES FALL DOWN!"]).certified(answers[1]) is False
    assert case_of(answers, ["Down fall the apples; so they say."]).certified(answers[0])
    assert case_of(answers[:1], ["Down fall the apples."]).certified(answers[0])


@pytest.mark.parametrize("repeat", ["Le café est ouvert ici.", "Le cafe\N{COMBINING ACUTE ACCENT} est ouvert ici."])
def test_a_passage_repeats_an_answer_in_any_normal_form(repeat: str) -> None:
    answer = "Le caf\N{LATIN SMALL LETTER E WITH ACUTE} est ouvert ici."
    assert certificate(answer, repeat, nli=YesMan()).certified is False


def test_a_further_copy_of_a_candidates_text_uncertifies_nothing() -> None:
    answer, text = "Down fall the apples.", "Apples fall down."

    def certified(*passages: str) -> bool | None:
        kind, evidence = FreeText(BagOfWords()), tuple(Passage("", passage) for passage in passages)
        pool = (answer, "Pears fall.")
        return Case(Question(QUESTION, kind.name, pool, (answer, text), evidence, kind=kind)).certified(answer)

    assert certified("APPLES FALL DOWN!") == certified("APPLES FALL DOWN!", text)


def test_passages_that_contradict_are_counted_and_are_no_veto_unless_asked_for() -> None:
    passages = ["Tea here is hot.", "Tea here is cold, they say.", "Tea is cold here."]
    found = certificate("Tea is hot.", *passages)
    assert found.certified
    assert found.reason == (
        "passages entail every claim; 2 passages contradict a claim; the threshold is not calibrated"
    )
    assert found.witness is not None
    assert found.witness.flags == ("contradicted",)
    assert certificate("Tea is hot.", *passages[:2], veto=True).certified is False
    assert certificate("Tea is hot.", passages[0], veto=True).certified


def test_a_veto_declares_the_law_that_it_gives_up() -> None:
    veto, plain = set(FreeText(veto=True).gives_up), set(FreeText().gives_up)
    assert veto - plain == {"more_evidence_never_uncertifies"} <= {law.name for law in LAWS}


SENTENCES = ["Apples fall.", "Tea is hot.", "Tea is cold.", "Ada is 5.", "Pears may fall.", "Ada is not old."]


@given(
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3).map(" ".join),
    st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1).map(" ".join), max_size=3),
    st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1).map(" ".join), max_size=3),
)
def test_more_evidence_never_uncertifies(answer: str, passages: list[str], more: list[str]) -> None:
    if certificate(answer, *passages).certified:
        assert certificate(answer, *passages, *more).certified
        assert certificate(answer, *reversed(passages)).certified
        assert certificate(answer, *passages, *passages).certified


def test_ten_thousand_passages_are_read_in_bounds_and_never_uncertify() -> None:
    nli, few = BagOfWords(), ["Apples fall down, they say."]
    many = [f"Passage {number} says that apples fall and fall." for number in range(10_000)]
    case = case_of(["Apples fall down.", "Pears fall down."], [*few, *many], nli)
    assert case.certified("Apples fall down.")
    assert nli.calls == 1
    assert len(nli.batches[0]) <= 2 * 2 * MOST_WINDOWS + 5


def test_a_fact_across_the_border_of_two_windows_is_read_whole() -> None:
    filler = "Nothing of note was said here."
    nli = BagOfWords(tokens=64)
    for before in range(12):
        text = " ".join([*[filler] * before, "Apples fall down.", "Pears taste good.", *[filler] * 5])
        assert certificate("Apples fall down and pears taste good.", text, nli=nli).certified
    assert max(len(premise) + len(hypothesis) for batch in nli.batches for premise, hypothesis in batch) < 64 * 4


def test_other_languages_are_left_to_the_model_but_for_their_digits() -> None:
    class Characters(BagOfWords):
        def reading(self, premise: str, hypothesis: str) -> tuple[float, ...]:
            asked = set(hypothesis.removeprefix(QUESTION).strip())
            return ENTAILS if asked <= set(premise) or "answers" in hypothesis else NEUTRAL

    passage = "卡塔尔的首都是多哈。它在２０２０年很大。"
    assert certificate("卡塔尔的首都是多哈。", passage, nli=Characters()).certified
    assert certificate("它在2020年很大。", passage, nli=YesMan()).certified
    assert certificate("它在2021年很大。", passage, nli=YesMan()).certified is False


def test_scoring_first_leaves_the_pool_to_be_read() -> None:
    nli = BagOfWords()
    case = case_of(["Apples fall far down."], ["In autumn apples fall far down."], nli)
    assert case.type.is_right("Apples fall far down.", ["Far down fall the apples."])
    assert case.certified("Apples fall far down.")


# --- what the model is asked ------------------------------------------------------------------------------------------


def test_a_question_takes_one_call_and_a_second_for_its_repair() -> None:
    nli = BagOfWords()
    pool = ["Apples fall down.", "Apples taste good.", "Pears fall.", "Apples fall down.", None]
    case = case_of(pool, ["In autumn apples fall down.", "Pears are red."], nli)
    for answer in pool:
        case.certificate(answer)
    assert (case.rival(), len(case.standings), nli.calls) == (False, 3, 1)
    repair = Repair("Pears are red.")
    assert case.repaired(repair) == "Pears are red."
    assert case.certified("Pears are red.") is False  # the passage says no more than that
    assert (case.same("Pears are red.", "Pears fall."), nli.calls) == (False, 2)
    assert len({pair for batch in nli.batches for pair in batch}) == sum(map(len, nli.batches))


def test_what_needs_no_model_asks_none() -> None:
    nli = BagOfWords()
    case = case_of(["Apples fall.", "apples fall", None], nli=nli)
    assert (case.vote.n_classes, case.certificate("Apples fall.").reason, nli.calls) == (1, "no evidence", 0)


def test_a_passage_that_repeats_a_text_with_its_reasoning_asks_no_further_call() -> None:
    nli, text = BagOfWords(), "Let me think. Apples fall down."
    kind = FreeText(nli)
    question = Question(QUESTION, kind.name, ("Apples fall down.",), (text,), (Passage("", text),), kind=kind)
    assert (Case(question).certified("Apples fall down."), nli.calls) == (False, 1)


# --- models that cannot be used ---------------------------------------------------------------------------------------


def wrong(said: Any) -> Any:
    return lambda pairs: said(pairs)


@pytest.mark.parametrize(
    ("nli", "message"),
    [
        (
            wrong(lambda pairs: [(0.97, 0.03, 0.0)] * len(pairs)),
            "must return contradiction, neutral and entailment, in",
        ),
        (wrong(lambda pairs: [(0.5, 0.5)] * len(pairs)), "must return three probabilities a pair that add up to 1"),
        (
            wrong(lambda pairs: [(1.0, 1.0, 1.0)] * len(pairs)),
            "must return three probabilities a pair that add up to 1",
        ),
        (wrong(lambda pairs: [(-1.0, 1.0, 1.0)] * len(pairs)), "must return three probabilities a pair that add up to"),
        (wrong(lambda pairs: [ENTAILS]), "must return a row for each of"),
        (wrong(lambda pairs: None), "must return three probabilities a pair; got None"),
        (wrong(lambda pairs: ["yes"] * len(pairs)), "must return three probabilities a pair; got"),
    ],
)
def test_a_model_with_wrong_labels_is_refused(nli: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        case_of(["Apples fall.", "Pears fall."], ["Apples fall down, they say."], nli)


def test_a_model_that_must_be_awaited_is_refused() -> None:
    async def later(pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        return [ENTAILS] * len(pairs)

    with pytest.raises(ArgumentError, match="is async"):
        case_of(["Apples fall far down.", "In autumn apples fall down."], nli=later)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nli": "a model"}, "nli must be an NLI model, or a function of"),
        ({"nli": BagOfWords}, "nli must be an NLI model, or a function of"),
        (
            {"calibration": 0.3},
            "calibration must be a Calibration, a file, or a threshold above 0.5 and at most 1; got 0.3",
        ),
        (
            {"calibration": True},
            "calibration must be a Calibration, a file, or a threshold above 0.5 and at most 1; got True",
        ),
        ({"calibration": "no/such"}, "calibration='no/such' must be a file of eldgr calibrate"),
        ({"goal": "Does it?"}, "goal must hold {} once"),
    ],
)
def test_what_the_type_is_made_of_is_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        FreeText(**given)
    assert str(caught.value).startswith(message)


def test_without_a_model_the_type_has_a_name_and_cannot_be_used() -> None:
    assert FreeText().class_of("Apples fall.") is not None
    with pytest.raises(ArgumentError, match="free_text must have an NLI model; got none"):
        Case(Question("?", "free_text", ("Apples fall.",), kind=FreeText()))


# --- scores, and what files state -------------------------------------------------------------------------------------


def test_an_answer_is_right_if_it_is_like_a_gold_answer() -> None:
    kind = FreeText(BagOfWords())
    assert kind.is_right("Apples fall.", ["Fall apples."])
    assert not kind.is_right("Apples fall.", ["Apples fall down."])
    assert not kind.is_right("Apples fall 5 m.", ["Apples fall 5 m far, to 6 m."])
    assert not kind.is_right(None, ["Apples fall."])
    with pytest.raises(ArgumentError, match="gold must be a list"):
        kind.is_right("Apples fall.", [])


def test_a_scorer_of_your_own_decides_what_is_right() -> None:
    kind = FreeText(scorer=lambda answer, gold: answer in gold)
    assert kind.is_right("Apples fall.", ["Apples fall."])
    with pytest.raises(ArgumentError, match="must be True or False; got 1"):
        FreeText(scorer=lambda answer, gold: 1).is_right("Apples fall.", ["Apples fall."])  # type: ignore[arg-type,return-value]


def test_files_state_the_model_and_all_that_decides() -> None:
    stated = FreeText(BagOfWords(), 0.8, veto=True).to_json()
    assert json.loads(json.dumps(stated)) == stated
    assert {"nli": "bag of words", "threshold": 0.8, "veto": True}.items() <= stated.items()
    assert FreeText(BagOfWords()).to_json() != stated
