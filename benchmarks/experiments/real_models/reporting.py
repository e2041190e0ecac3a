"""The tables of the experiment and what became of each claim, from the runs' files alone."""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.experiments.real_models.real_questions import records
from eldgr_dspy.statistics import Contrast, contrast

RETRIEVAL = ("hotpotqa", "mixed")
_OUTCOMES = Path(__file__).with_name("outcomes.toml")
Verdict = tuple[str, str]
"""`confirmed`, `refuted` or `inconclusive`, and the figures that it rests on."""


@dataclass(frozen=True)
class Run:
    """One pool's run: its figures, and whether each rule is right on each question."""

    name: str
    folder: Path

    @cached_property
    def figures(self) -> dict[str, Any]:
        """The pool's part of `summary.json`."""
        pools: dict[str, dict[str, Any]] = json.loads((self.folder / "summary.json").read_text(encoding="utf-8"))[
            "pools"
        ]
        return pools[self.name]

    @cached_property
    def decisions(self) -> list[dict[str, Any]]:
        """The lines of `decisions.jsonl`."""
        return [*records(self.folder / "decisions.jsonl")]

    @cached_property
    def right(self) -> dict[str, dict[str, bool]]:
        """By rule and question id."""
        by_rule = dict[str, dict[str, bool]]()
        for line in self.decisions:
            by_rule.setdefault(line["rule"], {})[line["id"]] = bool(line["em"])
        return by_rule

    @cached_property
    def without_repairs(self) -> dict[str, dict[str, bool]]:
        """The same if repairer and deriver were silent: consensus ships where one of them won."""
        right = {rule: dict(rows) for rule, rows in self.right.items()}
        for line in self.decisions:
            if line["branch"] == "repair":
                right[line["rule"]][line["id"]] = bool(line["majority_em"])
        return right

    def label(self, rule: str) -> str:
        """The rule's name in this run: with that of the first judge, if the rule is run for each."""
        return rule if rule in self.right else f"{rule}[{self.judges[0]}]"

    @property
    def judges(self) -> list[str]:
        """The names of the judges, in the order of the run."""
        return [rule.removeprefix("judge[").removesuffix("]") for rule in self.right if rule.startswith("judge[")]

    def against(self, rule: str, other: str) -> Contrast:
        """One rule against another, in percentage points."""
        mine, others = self.right[rule], self.right[other]
        return contrast([100 * mine[key] for key in mine], [100 * others[key] for key in mine])


def report(out: Path) -> None:
    """Print the tables as Markdown, and what became of each claim."""
    runs = {name: Run(name, out / name) for name in (*RETRIEVAL, "gsm8k") if (out / name / "summary.json").exists()}
    for run in runs.values():
        sys.stdout.write("\n".join([*_table(run), ""]) + "\n")
    claims = tomllib.loads(_OUTCOMES.read_text(encoding="utf-8"))
    sys.stdout.write("| claim | outcome | figures |\n| --- | --- | --- |\n")
    for name, (needs, test) in CLAIMS.items():
        outcome, figures = test(runs) if needs <= runs.keys() else ("not run", "")
        sys.stdout.write(f"| {claims[name]['claim']} | {outcome} | {figures} |\n")


def _table(run: Run) -> Iterator[str]:
    """Yield the paper's Table 1 or 2 for a pool, with what each rule costs a question."""
    n = run.figures["n"]
    yield f"## {run.name}: {n} questions"
    yield ""
    yield "| rule | EM | F1 | against majority, pp (95 % interval), exact p | won-lost | requests | tokens | seconds |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for rule, figures in run.figures["rules"].items():
        lead = run.against(rule, "majority")
        low, high = lead.interval
        tokens = [count for count in figures["tokens"].values() if count is not None]
        yield (
            f"| `{rule}` | {figures['em']:.2f} | {'' if figures['f1'] is None else format(figures['f1'], '.2f')} "
            f"| {lead.delta:+.2f} [{low:.2f}, {high:.2f}], {lead.p:.4f} | {lead.wins}-{lead.losses} "
            f"| {sum(figures['calls'].values()) / n:.2f} | {sum(tokens) / n:,.0f} | {figures['seconds'] / n:.1f} |"
        )


def _judge_alone(runs: dict[str, Run]) -> Verdict:
    if not all(runs[name].judges for name in ("hotpotqa", "gsm8k")):
        return "not run", "no judge was asked"
    contrasts = {
        f"{judge} on {name}": runs[name].against(f"judge[{judge}]", "majority")
        for name in ("hotpotqa", "gsm8k")
        for judge in runs[name].judges
    }
    return "refuted" if any(one.interval[0] > 0 for one in contrasts.values()) else "confirmed", _as_text(contrasts)


def _locked_against_alone(runs: dict[str, Run]) -> Verdict:
    run = runs["hotpotqa"]
    contrasts = {judge: run.against(f"eldgr[{judge}]", f"judge[{judge}]") for judge in run.judges}
    if any(one.interval[1] < 0 for one in contrasts.values()):
        return "refuted", _as_text(contrasts)
    ahead = all(one.delta > 0 for one in contrasts.values()) and any(one.interval[0] > 0 for one in contrasts.values())
    return "confirmed" if ahead else "inconclusive", _as_text(contrasts)


def _flips(runs: dict[str, Run]) -> Verdict:
    run = runs["hotpotqa"]
    losses = {
        judge: [run.against(f"{rule}[{judge}]", "majority").losses for rule in ("eldgr", "judge")]
        for judge in run.judges
    }
    text = "; ".join(f"{judge}: {lock} locked, {alone} alone" for judge, (lock, alone) in losses.items())
    if any(lock > alone for lock, alone in losses.values()):
        return "refuted", text
    return "confirmed" if all(3 * lock <= alone for lock, alone in losses.values()) else "inconclusive", text


def _certificate(runs: dict[str, Run]) -> Verdict:
    lead = runs["hotpotqa"].against("certified", "majority")
    text = _as_text({"certified": lead})
    return "confirmed" if lead.delta >= 0 else "refuted" if lead.interval[1] < 0 else "inconclusive", text


def _authority(runs: dict[str, Run]) -> Verdict:
    run = runs["hotpotqa"]
    share = run.figures["rules"][run.label("eldgr")]["asked"]["judge"] / run.figures["n"]
    return "confirmed" if share < 1 / 2 else "refuted" if share >= 2 / 3 else "inconclusive", f"{100 * share:.1f} %"


def _bounds(runs: dict[str, Run]) -> Verdict:
    shares = {
        (run, rule): 100 * sum(run.without_repairs[rule].values()) / run.figures["n_scored"]
        for run in runs.values()
        for rule in run.right
    }
    outside = [
        f"{rule} on {run.name} ({share:.2f})"
        for (run, rule), share in shares.items()
        if not run.figures["bounds"][rule][0] - 1e-9 <= share <= run.figures["bounds"][rule][1] + 1e-9
    ]
    return "refuted" if outside else "confirmed", ", ".join(outside) or f"{len(shares)} rules, none outside"


def _arithmetic(runs: dict[str, Run]) -> Verdict:
    lead = runs["gsm8k"].against(runs["gsm8k"].label("eldgr"), "majority")
    text = _as_text({"eldgr": lead})
    return "confirmed" if lead.interval[1] < 0 else "refuted" if lead.interval[0] > 0 else "inconclusive", text


def _arithmetic_lock(runs: dict[str, Run]) -> Verdict:
    run = runs["gsm8k"]
    contrasts = {rule: run.against(run.label(rule), "majority") for rule in ("support", "eldgr")}
    support, letter = contrasts["support"].losses, contrasts["eldgr"].losses
    return "confirmed" if support < letter else "refuted" if support > letter else "inconclusive", _as_text(contrasts)


def _as_text(contrasts: dict[str, Contrast]) -> str:
    return "; ".join(
        f"{name} {one.delta:+.2f} [{one.interval[0]:.2f}, {one.interval[1]:.2f}], {one.wins}-{one.losses}"
        for name, one in contrasts.items()
    )


CLAIMS: dict[str, tuple[set[str], Callable[[dict[str, Run]], Verdict]]] = {
    "judge_alone": ({"hotpotqa", "gsm8k"}, _judge_alone),
    "locked_against_alone": ({"hotpotqa"}, _locked_against_alone),
    "flips": ({"hotpotqa"}, _flips),
    "certified": ({"hotpotqa"}, _certificate),
    "authority": ({"hotpotqa"}, _authority),
    "bound": ({"hotpotqa"}, _bounds),
    "arithmetic": ({"gsm8k"}, _arithmetic),
    "arithmetic_lock": ({"gsm8k"}, _arithmetic_lock),
}
"""For each claim of `outcomes.toml` the runs that it needs, and how it is decided."""
