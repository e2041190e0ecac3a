"""The decided questions of a run: what its figures are made from, and the lines that state its decisions."""

from collections.abc import Mapping, Sequence

from eldgr_dspy.answers import Score
from eldgr_dspy.certificates import Witness
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.decided_rows import DecidedRows
from eldgr_dspy.figures.judges import JudgeFacts
from eldgr_dspy.figures.results.decision import Decided, Witnessed
from eldgr_dspy.figures.results.record import Effects
from eldgr_dspy.figures.results.summary import PoolFigures
from eldgr_dspy.figures.summary import pool_effects, pool_figures
from eldgr_dspy.named_judges import judge_in, labelled
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.run.runner import Settled

_AROUND = 80  # characters on either side of a witness


class Counted:
    """The decided questions of one pool or several, by the same rules."""

    def __init__(self, rules: Sequence[str]) -> None:
        """Take the names of the rules."""
        self._rules = rules
        self._rows: dict[str, DecidedRows] = {}

    def begin(self, pool: Pool) -> None:
        """Begin a pool, even one without rows."""
        self._rows.setdefault(pool.name, DecidedRows(pool.task, self._rules))

    def add(self, pool: Pool, settled: Settled) -> list[Decided]:
        """Add a row, and return its decisions."""
        row, outcomes = settled.row, settled.outcomes()
        sources = [candidate.source for candidate in row.candidates]
        judged = settled.consultations.values()
        scores = self._rows[pool.name].add(settled.case, row.gold, outcomes, settled.failed, sources, judged)
        majority = scores.get("majority")
        return [
            _decided(pool.name, row, rule, outcome.decision, scores[rule], majority)
            for rule, outcome in outcomes.items()
            if outcome.decision is not None
        ]

    def pools(self, facts: Mapping[str, JudgeFacts]) -> dict[str, PoolFigures]:
        """Return the figures of each pool; `facts` are those of the named judges."""
        return {name: pool_figures(rows, facts) for name, rows in self._rows.items()}

    def effects(self) -> dict[str, Effects]:
        """Return the judge's biases on each pool that has rows; those of a judge with a name as `POOL[NAME]`."""
        judges = dict.fromkeys([None, *map(judge_in, self._rules)])
        found = {name: pool_effects(rows) for name, rows in self._rows.items()}
        return {labelled(name, judge): of[judge] for name, of in found.items() for judge in judges if judge in of}


def _decided(
    pool: str, row: Row, rule: str, decision: Decision, score: Score | None, majority: Score | None
) -> Decided:
    return {
        "pool": pool,
        "id": row.id,
        "question": row.question,
        "gold": row.gold,
        "rule": rule,
        "answer": decision.answer,
        "branch": decision.branch,
        "reason": decision.reason,
        "certified": decision.certified,
        "witness": None if decision.witness is None else _witnessed(row, decision.witness),
        "consensus": decision.consensus,
        "tie": decision.tie,
        "preference": decision.preference,
        "repair": decision.repair,
        "consulted": list(decision.consulted),
        "abstentions": dict(decision.abstentions),
        "ranking": list(decision.ranking),
        "notes": list(decision.notes),
        "em": score.em if score else None,
        "f1": score.f1 if score else None,
        "majority_em": majority.em if majority else None,
    }


def _witnessed(row: Row, witness: Witness) -> Witnessed:
    """Return where a witness is: its slice, its passage's title and the text around it, to be read on its own."""
    passage = row.evidence[witness.passage]
    source = passage.title if witness.field == "title" else passage.text
    return {
        "passage": witness.passage,
        "field": witness.field,
        "start": witness.start,
        "end": witness.end,
        "text": witness.text,
        "level": witness.level,
        "flags": list(witness.flags),
        "sha256": witness.sha256,
        "title": passage.title,
        "before": source[max(0, witness.start - _AROUND) : witness.start],
        "after": source[witness.end : witness.end + _AROUND],
    }
