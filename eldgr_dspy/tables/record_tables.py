"""The judge's record as a card: what `record.json` states, on one page, as a table of two columns."""

from collections.abc import Iterator, Mapping

from eldgr_dspy.base.formatting import UNDEFINED, count_of, figure, questions
from eldgr_dspy.figures.results.record_fields import OverrideRates, PoolStated, Record, Silence
from eldgr_dspy.tables.table import Table, columns_of, table_of
from eldgr_dspy.words import Branch


def record_table(record: Record) -> Table:
    rows = (*_rule(record), *_overrides(record), *_roles(record), *_sums(record))
    return Table("the judge's record", ("what", "stated"), tuple(rows), tuple(record["remarks"]))


def silences_table(record: Record) -> Table:
    rows = [(of["role"], of) for of in record["silences"]]
    title = "why roles abstained or failed, all attempts counted"
    return table_of(title, "role", columns_of(Silence, "outcome kind reason consultations"), rows)


def pools_table(record: Record) -> Table:
    return table_of("pools by their content", "pool", columns_of(PoolStated, "rows sha256"), record["pools"])


def _rule(record: Record) -> Iterator[tuple[str, str]]:
    yield "default to beat", record["default"]
    for task, level in record["certificate"].items():
        level_text = f"{level['name']} (source {level['source']})" if isinstance(level, Mapping) else level
        yield f"certificate required, {task}", level_text or UNDEFINED


def _overrides(record: Record) -> Iterator[tuple[str, str]]:
    for pool, rates in record["override_rates"].items():
        if rates is None:
            yield f"{pool}: overrides", f"{UNDEFINED}: eldgr has no result there"
            continue
        of = questions(rates["questions"])
        yield f"{pool}: overrides by the judge", f"{figure(rates['by_judge'])} % of {of}{_split(rates, 'judge')}"
        by_repair = f"{figure(rates['by_repair'])} % of {of}{_split(rates, 'repair')}"
        yield f"{pool}: overrides by a repair or a derivation", by_repair


def _split(rates: OverrideRates, branch: Branch) -> str:
    """The overrides by outcome, then by certificate, in percent of the questions; empty without overrides."""
    splits = [*rates["by_outcome"].get(branch, {}).items()], [*rates["by_certificate"].get(branch, {}).items()]
    parts = (", ".join(f"{name} {figure(share)} %" for name, share in split) for split in splits if split)
    return "".join(f"; {part}" for part in parts)


def _roles(record: Record) -> Iterator[tuple[str, str]]:
    for model in record["models"]:
        server = model["served"] or UNDEFINED
        calls = f"{count_of(model['calls'])} call{'' if model['calls'] == 1 else 's'}"
        yield f"{model['role']}: model", f"{model['asked'] or UNDEFINED}, served by {server}, {calls}"
    roles = {model["role"] for model in record["models"]}
    for role, details in record["roles"].items():
        if role not in roles:
            yield f"{role}: no model", str(details.get("module") or UNDEFINED)
    for role, prints in record["fingerprints"].items():
        yield f"{role}: fingerprint", f"{prints['role']} (prompts {prints['prompts']}, settings {prints['settings']})"
    for role, failures in record["parse_failures"].items():
        if failures["of"]:
            share = f"{count_of(failures['count'])} of {count_of(failures['of'])} ({figure(failures['rate'])} %)"
            yield f"{role}: replies that could not be read", share


def _sums(record: Record) -> Iterator[tuple[str, str]]:
    cost = record["cost"]
    tokens = f"{count_of(cost['prompt_tokens'])} tokens read, {count_of(cost['completion_tokens'])} written"
    yield "cost", f"{count_of(cost['calls'])} LM calls, {tokens}, ${figure(cost['cost'], 4)}"
    if record["confirmation"]:
        yield "freeze", record["confirmation"]["lock"]
