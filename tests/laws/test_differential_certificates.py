"""Certificates, numbers and derivations against the naive implementation of `tests/naive`, written from the rulings."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.derivation.arithmetic import evaluate
from eldgr_dspy.derivation.tracing import question_numbers, traceable
from eldgr_dspy.errors import UnexecutableError
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.derivations import check_derivation
from eldgr_dspy.testing import WORDS, raw_text
from eldgr_dspy.text.numbers import parse_number
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import POLICIES, STRICTNESS, Policy
from tests.case_tables import tables_of
from tests.naive import naive_arithmetic, naive_derivations, naive_tracing
from tests.naive.naive_answers import class_of, number
from tests.naive.naive_certificates import occurrence, occurs
from tests.naive.naive_reading import strip

PARTS = tables_of("laws")["parts"]
WRAPPERS = st.sampled_from(PARTS["wrappers"])


def texts_of(parts: str, most: int = 8) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from([*PARTS[parts].split(), " "]), max_size=most).map("".join)


def words_of(parts: str, most: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(PARTS[parts].split()), max_size=most).map(" ".join)


EVIDENCE = texts_of("evidence")
NEAR = texts_of("markup") | texts_of("ends", 10) | texts_of("amounts", 10)
QUANTITIES = texts_of("quantities", 12) | words_of("quantity words", 9)


@st.composite
def searches(draw: st.DrawFn) -> tuple[str, list[Passage]]:
    """An answer, often a slice of the evidence or its other case, and the evidence."""
    sources = draw(st.lists(EVIDENCE | NEAR | QUANTITIES | raw_text, min_size=1, max_size=4))
    source = draw(st.sampled_from(sources))
    start = draw(st.integers(0, len(source)))
    answer = source[start : draw(st.integers(start, len(source)))]
    passages = [Passage(*pair) for pair in zip(sources[::2], [*sources[1::2], ""], strict=False)]
    spellings = (answer, answer.upper(), answer.swapcase(), draw(WRAPPERS) % answer)
    return draw(st.sampled_from(spellings) | st.sampled_from(WORDS)), passages


@given(QUANTITIES, st.lists(QUANTITIES, min_size=1, max_size=3), st.sampled_from(("token", "folded")))
@example("two hours", ["2 hours 30 minutes", "2 hours"], "folded")
@example("10 p.m.", ["22:00:30", "at 22:00"], "folded")
@example("$5 million", ["A$5,000,000", "$5,000,000"], "token")
def test_a_quantity_is_certified_where_the_naive_search_is(answer: str, texts: list[str], policy: Policy) -> None:
    passages = [Passage("", text) for text in texts]
    assert certify(answer, passages, policy).certified is occurs(answer, passages, policy)


@pytest.mark.law("more_evidence_never_uncertifies", "differential")
@pytest.mark.law("evidence_order_and_duplicates_do_not_matter", "differential")
@given(searches(), st.sampled_from(POLICIES))
@example(("x", [Passage("", "of^x")]), "token")  # whether a power held together hung on a digit some words away
@example(("x", [Passage("", "of^x and 5")]), "token")
@example(("5", [Passage("", "it was − $5")]), "token")
@example(("株式", [Passage("", "㍿")]), "folded")
def test_an_answer_is_certified_where_the_naive_one_is(sample: tuple[str, list[Passage]], policy: Policy) -> None:
    answer, passages = sample
    certificate = certify(answer, passages, policy)
    assert certificate.certified is occurs(answer, passages, policy)
    if (witness := certificate.witness) is not None:
        place = (witness.passage, witness.field, witness.start, witness.end)
        assert place == occurrence(answer.strip(), passages, policy)


@given(NEAR | EVIDENCE | QUANTITIES, WRAPPERS)
@example("A the", "%s")
@example("(\\)", "\\boxed{%s}")  # the twin took the brackets off marks alone
def test_a_class_is_the_naive_one(text: str, wrapper: str) -> None:
    answer = wrapper % text
    assert strip_answer(answer) == strip(answer)
    class_ = answer_class(answer, "retrieval")
    assert (class_ and class_.key) == class_of(answer, "retrieval")


@given(texts_of("numbers", 7))
@example("$5€")  # was read as 5
@example("$5$")
def test_a_number_is_the_naive_one(text: str) -> None:
    reading = parse_number(text)
    assert (reading and (reading.value, reading.percent)) == number(text)


@given(texts_of("expressions"))
@example("20%%64")
@example("0x10")
def test_an_expression_has_the_value_that_python_s_parser_gives_it(text: str) -> None:
    try:
        own: Fraction | None = evaluate(text)
    except UnexecutableError:
        own = None
    assert own == value_of(text)


@given(words_of("questions", 6))
@example("dates")  # was taken for a plural of 'day'
@example("Davos 2 shirts")
@example("one thousand and zero")
@example("twenty hundred one hundred")  # was one number
def test_a_question_gives_the_naive_numbers(question: str) -> None:
    assert question_numbers(question) == naive_tracing.question_numbers(question)
    assert traceable(question) == naive_tracing.traceable(question)


def spell(value: Fraction, decimal: bool) -> str:
    short = f"{float(value):g}"
    return short if decimal and "e" not in short and Fraction(short) == value else str(value)


AMOUNTS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 18, 20, 24, 25, 50, 100]).map(Fraction)
FORMS = (
    *("{a} + {k} = X", "{a} - {k} = X", "{a} * {k} = X", "{a} / {k} = X", "{k} - {a} = X", "{k} / {a} = X"),
    *("({a} - {k}) * {j} = X", "({a} / {k}) + {j} = X", "{k} + {j} = X", "{k} * {j} = X", "{k}+{k}+{k} = X"),
    *("{e} = X", "{a} = {a}", "{a} - {k} = {e} - {k}", ""),
)


@st.composite
def derivations(draw: st.DrawFn) -> tuple[Derivation, str]:
    """A derivation of up to three steps, mostly true and traced, with a check of some form; and its question."""
    numbers = draw(st.lists(AMOUNTS, min_size=1, max_size=4))
    endings = st.sampled_from(("", " a week", " percent", "%", " dozen", " and a half"))
    question = "There are " + " ".join(f"{number} pens{draw(endings)}" for number in numbers)
    values, steps = list(numbers), list[Step]()
    for _ in range(draw(st.integers(1, 3))):
        left, right = (spell(draw(st.sampled_from(values) | AMOUNTS), draw(st.booleans())) for _ in range(2))
        sides = ("{0}{2}{1}", "{0} {2} {1}", "({0} {2} {1}) * 1", "{0} {2} {1} = {0} {2} {1}")
        expression = draw(st.sampled_from(sides)).format(left, right, draw(st.sampled_from("+-*/")))
        value = value_of(expression.partition("=")[0])
        if value is not None:
            steps.append(Step(expression, spell(value + draw(st.sampled_from([0] * 20 + [1])), draw(st.booleans()))))
            values.append(value)
    answer = values[-1] if draw(st.integers(0, 20)) else Fraction(5)
    form = draw(st.sampled_from(FORMS))
    check = form.format(
        a=spell(answer, draw(st.booleans())),
        k=spell(draw(st.sampled_from(values)), False),
        j=spell(draw(st.sampled_from(values)), False),
        e=steps[-1].expression if steps else "1",
    )
    result = value_of(check.partition("=")[0])
    return Derivation(tuple(steps), spell(answer, False), check.replace("X", str(result))), question


def value_of(text: str) -> Fraction | None:
    try:
        return naive_arithmetic.value(naive_arithmetic.read(text))
    except naive_arithmetic.UnreadableError:
        return None


@pytest.mark.law("unchecked_derivation_changes_nothing", "differential")
@given(derivations())
@example((Derivation((Step("6/6*6", "6"),), "6", "6 + 6 = 12"), "6 pens"))
@example((Derivation((Step("25/50", "1/2"),), "1/2", "1/2 + 50 = 101/2"), "50 pens and 1 and a half"))
@example((Derivation((Step("6-6", "0"),), "0", "(0 - 6) * 0 = 0"), "6 pens and 1"))
@example((Derivation((Step("3/3-3", "-2"),), "-2", "-2 / 6 = -1/3"), "3 pens and 6"))
@example((Derivation((Step("24 / 24", "1"), Step("1 / 1+1", "2")), "2", "(2 / 2) + 1 = 2"), "1 and 24 pens"))
def test_a_derivation_passes_the_levels_that_the_naive_check_passes(pair: tuple[Derivation, str]) -> None:
    derivation, question = pair
    levels = [level for level in STRICTNESS if check_derivation(derivation, question, level).passed]
    assert levels == naive_derivations.levels(derivation, question)
