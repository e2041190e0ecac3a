"""Say in sentences which results of a run are comparable with the paper's and which are not.

A run does not prove whose questions or candidates it is on. So unknown facts are called unknown, even if the numbers
happen to be the paper's.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.paper.published import CANDIDATES, JUDGE, LABELS, Selection
from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.figures.record import is_same_model
from eldgr_dspy.figures.remarks import missing_roles
from eldgr_dspy.words import Role, Task

Here = Mapping[str, Any]
"""What a run measured, as `benchmarks.paper.paper_runs.found_in` returns it."""

_STATISTICS = (
    "Comparable: the statistics are the paper's: paired percentile bootstrap with 20,000 resamples of questions, "
    "two-sided exact McNemar test, "
)
_RECORDING = ", and a recording does not say what made it"
_SCORES: Mapping[Task, str] = {
    "arithmetic": "numeric accuracy.",
    "retrieval": "EM and token F1 by HotpotQA's normalisation.",
}


def comparable(here: Here, selection: Selection) -> Iterator[str]:
    """Yield a sentence for each respect in which a run matches the paper."""
    yield (
        "Comparable: the rules are the paper's, all on one frozen pool and the same replies, so that rows differ by "
        "the rule alone."
    )
    yield _STATISTICS + _SCORES[selection.task]
    if _counts(here) == {CANDIDATES}:
        yield "Comparable: four candidates a question."
    if _judges(here) and _paper_judge(here):
        yield f"Comparable: the judge was {' and '.join(_judges(here))}, the paper's model."
    if selection.task == "retrieval" and here["settings"]["certificate"] == "substring":
        yield "Comparable: the certificate is verbatim occurrence."
    if selection.task == "arithmetic" and here["settings"]["derivation"] == "stated":
        yield "Comparable: a derivation counts if it parses and has a check."
    if selection.audit is not None and here["confirmation"]:
        yield "Comparable: the run was under a freeze."


def not_comparable(here: Here, selection: Selection) -> Iterator[str]:
    """Yield a sentence for each respect in which a run differs from the paper, or may differ."""
    yield _questions(here, selection)
    yield f"Not comparable: a run does not state who wrote the candidates; in the paper it is {selection.candidates}."
    if (counts := _counts(here)) not in ({CANDIDATES}, set()):
        span = " to ".join(map(str, sorted(counts)))
        yield f"Not comparable: {span} candidates a question, and four in the paper."
    yield from _roles(here, selection)
    yield from _settings(here["settings"], selection.task)
    if selection.audit is not None and here["confirmation"] is None:
        yield "Not comparable: the run had no freeze, so nothing shows that its rule was fixed beforehand."
    yield from _gaps(here)


def _questions(here: Here, selection: Selection) -> str:
    if here["n_scored"] == selection.n:
        as_many = f"Not comparable: pool {here['pool']!r} has as many scored questions as the paper; a run cannot tell"
        return f"{as_many} whether they are the same."
    return (
        f"Not comparable: {questions(here['n_scored'])} of pool {here['pool']!r}, and {selection.n:,} of "
        f"{selection.title} in the paper; absolute scores are of other questions."
    )


def _counts(here: Here) -> set[int]:
    candidates = here["candidates"]
    return {count for count in (candidates["fewest"], candidates["most"]) if count is not None} if here["n"] else set()


# -- who answered -----------------------------------------------------------------------------------------------------


def _judges(here: Here) -> list[str]:
    return here["roles"]["judge"]["models"] if "judge" in here["roles"] else []


def _paper_judge(here: Here) -> bool:
    return all(is_same_model(model, JUDGE) for model in _judges(here))


def _roles(here: Here, selection: Selection) -> Iterator[str]:
    if not (_judges(here) and _paper_judge(here)):
        yield f"Not comparable: {_who(here, 'judge')}; the paper's judge is {JUDGE}, by Ollama."
    verifier = answer_type(selection.task).repairer
    yield f"Not comparable: {_who(here, verifier)}; the paper does not name its verifier's model."
    for role, counts in here["roles"].items():
        if 0 < counts["recorded"] < counts["consultations"]:
            yield (
                f"Not comparable: {counts['recorded']:,} of {counts['consultations']:,} consultations of the {role} "
                f"were recorded{_RECORDING}."
            )
        if counts["abstained"] == counts["consultations"]:
            yield (
                f"Not comparable: the {role} abstained on all {questions(counts['consultations'])}, so no rule used "
                "its replies."
            )
        elif counts["abstained"]:
            yield f"The {role} abstained on {counts['abstained']:,} of {questions(counts['consultations'])}."


def _who(here: Here, role: Role) -> str:
    counts = here["roles"].get(role)
    if counts is None:
        return f"the {role} was never asked"
    if counts["models"]:
        return f"the {role} was {' and '.join(counts['models'])}"
    if counts["recorded"] == counts["consultations"]:
        return f"the {role}'s replies are recorded{_RECORDING}"
    folder, _, name = str(counts["module"]).rpartition(".")
    silent = folder == "eldgr_dspy.programs.heuristics"
    return f"the {role} is {name}, {'which asks no LM' if silent else 'and no LM call of it was counted'}"


# -- how it decided ---------------------------------------------------------------------------------------------------


def _settings(settings: Mapping[str, Any], task: Task) -> Iterator[str]:
    if task == "retrieval":
        certificate = settings["certificate"]
        if certificate != "substring":
            name = certificate["name"] if isinstance(certificate, Mapping) else certificate
            yield (
                f"Not comparable: the certificate is {name!r}, and verbatim occurrence in the paper (--certificate "
                "substring)."
            )
        if settings["preference"] != "global":
            yield f"Not comparable: the preference is {settings['preference']!r}, and global in the paper's equation."
    elif settings["derivation"] != "stated":
        yield (
            f"Not comparable: derivations are checked at {settings['derivation']!r}; the paper accepts one that parses "
            "and has a check (--derivation stated)."
        )
    if settings["homogeneous"] is not None:
        yield (
            f"Not comparable: pools of one class are set to {settings['homogeneous']!r}, and not left as in the paper."
        )


def _gaps(here: Here) -> Iterator[str]:
    if here["n_scored"] < here["n"]:
        yield f"Scores are over the {questions(here['n_scored'])} that have a gold answer, of {here['n']:,}."
    if here["n_failed"]:
        yield f"{questions(here['n_failed'])} had a failed call and decided as if that role had abstained."
    for rule, label in LABELS.items():
        if rule in here["withheld"]:
            yield f"{label} has no result here: {missing_roles(here['withheld'][rule])}."
        elif rule not in here["rules"]:
            yield f"{label} has no result here: {rule} was not among the rules of the run."
    yield from here["remarks"]
