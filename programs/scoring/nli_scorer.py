"""The seven channels of reasoning texts, from an NLI model and retrieved documents: one table a text.

`logic` reads a step under question and earlier steps. `fact`, `triang`, the strength of evidence, conflation and the
least f all read one row, the step under its documents. `adv` reads the changed step under the same documents, and `min`
each claim; if the step is its only claim, nothing more is read. `info` reads words. All pairs of a group of texts are
read in one call, each once. A score is what a model said about pairs, and certifies nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any

from eldgr_dspy.channels.claims import Claims, rule_claims
from eldgr_dspy.channels.counterfactuals import Counterfactuals, rule_counterfactuals
from eldgr_dspy.channels.formulas import adv, epist, fact, info, logic, minimality, triang
from eldgr_dspy.channels.grounding import Grounding
from eldgr_dspy.channels.overlap import independent_sources, new_unsupported, novelty, progress
from eldgr_dspy.channels.protocols import NLI, Reasoning, Retriever
from eldgr_dspy.channels.rewards import PAPER, Weighting
from eldgr_dspy.channels.step_table import StepTable, score_steps
from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.group import Group, gather
from eldgr_dspy.programs.scoring.nli_pairs import MaybeRow, Readings, read
from eldgr_dspy.rule.questions import require_one_of
from eldgr_dspy.words import READINGS, Channel, Reading

NO_READING = Undefined("the NLI model gave no number for the step under anything")

_ReadRows = Callable[[Iterable[MaybeRow]], Grounding]


@dataclass(frozen=True, slots=True)
class NLIScorer:
    """Scores texts by what an NLI model reads in pairs of premise and hypothesis. It holds no state.

    Attributes:
        nli: The model.
        retriever: The corpus of every text, whose own passages are then not read; None if each text is compared with
            its own passages, found by BM25.
        k: How many documents a step is compared with at most; 5 in the paper.
        reading: How f is made of three probabilities; see `f_nli`.
        claims: Who says what a step claims.
        counterfactuals: Who changes a step.
        weighting: Weights, gate and threshold of the reward.

    Raises:
        ArgumentError: `k` or `reading` is out of range.
    """

    nli: NLI
    retriever: Retriever | None = None
    k: int = 5
    reading: Reading = "label"
    claims: Claims = rule_claims
    counterfactuals: Counterfactuals = rule_counterfactuals
    weighting: Weighting = PAPER

    def __post_init__(self) -> None:
        require_one_of("reading", self.reading, READINGS)
        if type(self.k) is not int or self.k < 1:
            raise ArgumentError(f"k must be a whole number of at least 1; got {self.k!r:.80}.")

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        """Return the table of each text, in order, from one call of the model; without pairs to read, from none.

        The numbers of documents in a table are those of the shared corpus, or of the text's own passages.

        Raises:
            ArgumentError: A text has another number of confidences than steps, or one that is not in [0, 1]; or one of
                the helpers returned what its protocol does not allow.
        """
        group = gather(reasonings, self.retriever, self.k, self.claims, self.counterfactuals)
        readings = read(self.nli, group.rows())
        group = _mark_gaps(group, readings)
        columns, grounding = _measure(
            group, lambda rows: Grounding.from_probabilities(map(readings.of, rows), self.reading)
        )
        scores = score_steps(columns, grounding, self.weighting)
        own = zip(group.texts, group.slices(), strict=True)
        return [StepTable(text.text, text.spans, scores[steps]) for text, steps in own]


def _mark_gaps(group: Group, readings: Readings) -> Group:
    """Return the group; a step for which the model gave no number under any premise can't be scored."""
    nothing: Any = dict.fromkeys(("silent", "before", "documents", "change", "claims"), NO_READING)
    gaps = [readings.nothing_of(step.before, step.documents) for step in group.steps]
    steps = [replace(step, **nothing) if is_gap else step for step, is_gap in zip(group.steps, gaps, strict=True)]
    return replace(group, steps=tuple(steps))


def _measure(group: Group, f: _ReadRows) -> tuple[dict[Channel, Scores], Grounding]:
    """Return the channels of all steps in one row, and what the documents say; `f` reads rows of premises."""
    grounding = f(step.documents for step in group.steps)
    hits = [() if at in grounding.reasons else tuple(step.hits) for at, step in enumerate(group.steps)]
    grounding = grounding.renumber(hits)
    facts = fact(grounding.best())
    columns: dict[Channel, Scores] = {
        "logic": logic(f(step.before for step in group.steps).best()),
        "fact": facts,
        "epist": epist(_unless_silent(group, group.confidences), facts),
        "info": _info(group),
        "triang": triang(_independent(group, grounding)),
        "adv": adv(facts, fact(f(step.change for step in group.steps).best())),
        "min": minimality(_new_facts(group, f)),
    }
    return columns, grounding


def _unless_silent(group: Group, values: Iterable[Score]) -> list[Score]:
    """Return the values, but undefined for a step that can't be scored."""
    return [value if step.silent is None else step.silent for value, step in zip(values, group.steps, strict=True)]


def _info(group: Group) -> Scores:
    new, on = list[Score](), list[Score]()
    for reasoning, steps in zip(group.reasonings, group.slices(), strict=True):
        contents = [one.step.text for one in group.steps[steps]]
        new += novelty(contents)
        on += progress(contents, reasoning.question, reasoning.answer)
    return info(_unless_silent(group, new), on)


def _independent(group: Group, grounding: Grounding) -> list[Score]:
    """n_indep of each step."""
    return [
        row if isinstance(row, Undefined) else independent_sources([step.hits[number] for number in row])
        for step, row in zip(group.steps, grounding.entailing(), strict=True)
    ]


def _new_facts(group: Group, f: _ReadRows) -> list[Score]:
    """n_new of each step."""
    rows = [() if isinstance(step.claims, Undefined) else step.claims for step in group.steps]
    best, ends = f(chain.from_iterable(rows)).best(), accumulate(map(len, rows))
    support = [best[end - len(own) : end] for own, end in zip(rows, ends, strict=True)]
    claims = [
        step.claims if isinstance(step.claims, Undefined) else [row.hypothesis for row in step.claims]
        for step in group.steps
    ]
    return [count for steps in group.slices() for count in new_unsupported(claims[steps], support[steps])]
