"""The command that resumes a run parses back to the same options, whatever is named in it."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.programs.commands.command import cli
from eldgr_dspy.programs.commands.decide import command_that_asks
from eldgr_dspy.programs.commands.options import names_in
from eldgr_dspy.programs.commands.role_models import Models
from eldgr_dspy.programs.lms.models import is_of_ollama
from eldgr_dspy.programs.run.role_calls import metered_settings, role_call
from eldgr_dspy.programs.run.settling import Redecisions
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.refusals import REFUSALS, OwnRefusals
from eldgr_dspy.words import CONSULT, HOMOGENEOUS, POLICIES, PREFERENCE, REFUSAL, ROLES, STRICTNESS, Role

FREE = ("freeze", "fresh", "replay", "workers", "max_calls", "max_cost", "dry_run", "json", "quiet")
"""Options that do not say how a run was made; left as they are."""

NAMES = ("pool.jsonl", "my pool.jsonl", "-p.jsonl", "--lm", "a'b\"c.jsonl", "$(ls);*.jsonl", "~/p", "é\n.jsonl", "-")
ADDRESSES = ("http://h:1/v1", "http://h/a;b")
MODELS = ("openai/a", "openai/b c", "openai/$(d)'e", "ollama/qwen3:8b", "ollama_chat/g")


class Spec(NamedTuple):
    """How a run was made."""

    models: Mapping[Role, str | None]
    api_base: str | None
    num_ctx: int | None
    style: tuple[Any, int]
    settings: Settings
    roles: tuple[Role, ...]

    def details(self) -> dict[Role, Mapping[str, Any]]:
        """What the journal of such a run says of the roles that were asked."""
        options: Any = {**self.models, "api_base": self.api_base, "num_ctx": self.num_ctx}
        models = Models(**options, judge_style=self.style[0], orders=self.style[1])
        selector = models.selector(self.settings.arguments())
        with metered_settings():
            return {role: role_call(getattr(selector, role)).details for role in self.roles}


PHRASES: Any = (REFUSALS, (), ("pass", "-not  me"), "tests.refusing_function:hedges")
CHOICES = (POLICIES, STRICTNESS, CONSULT, (None, *HOMOGENEOUS), PREFERENCE, PHRASES, REFUSAL)
SETTINGS = st.builds(Settings, *map(st.sampled_from, CHOICES))


@st.composite
def runs(draw: st.DrawFn) -> Spec:
    """Runs as the command makes them: a role that was not asked is one that nothing is known of."""
    roles: list[Role] = [role for role in ROLES if draw(st.booleans())]
    models: dict[Role, str | None] = {role: draw(st.none() | st.sampled_from(MODELS)) for role in roles}
    names = [model for model in models.values() if model]
    of_ollama = any(map(is_of_ollama, names))
    api_base = draw(st.none() | st.sampled_from(ADDRESSES[: 1 if of_ollama else 2])) if names else None
    num_ctx = draw(st.sampled_from([None, 4096])) if of_ollama else None
    styles = [("listwise", 1), ("listwise", 3), ("pairwise", 1), ("pairwise", 2)]
    styles += [("pointwise", 1)] if models.get("judge") else []
    style = draw(st.sampled_from(styles)) if "judge" in roles else ("listwise", 1)
    return Spec(models, api_base, num_ctx, style, draw(SETTINGS), tuple(roles))


SIMPLE = Spec({"repairer": "ollama/qwen3:8b"}, None, None, ("listwise", 1), Settings(), ("repairer",))
BOTH: dict[Role, str | None] = {"judge": "ollama/qwen3:8b", "repairer": "openai/a"}
TWO_LMS = SIMPLE._replace(models=BOTH, api_base="http://h/v1", roles=("judge", "repairer"))
"""The two LMs state one address differently."""


def command_for(spec: Spec, out: str, pools: list[str], rules: list[str], limit: int | None) -> list[str]:
    """The words of the command for such a run, as a shell would split them."""
    heads: list[dict[str, Any]] = [{"kind": "settings", "name": "rule", "details": spec.settings.to_json()}]
    heads += [{"kind": "role", "name": role, "details": details} for role, details in spec.details().items()]
    totals: Any = None
    refusals = spec.settings.refusals
    own = {"refusals": refusals} if isinstance(refusals, OwnRefusals) else {}
    files: Any = tuple(SimpleNamespace(path=Path(name)) for name in pools)
    run, again = RunRead(Path(out), heads, totals, own=own), Redecisions(tuple(rules), files, limit, {})
    return shlex.split(command_that_asks(run, again, frozenset(spec.roles)) or "")


@settings(max_examples=60)
@given(
    runs(),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(["majority", "eldgr", "rules:my_own"]), min_size=1, unique=True),
    st.none() | st.integers(1, 10**6),
)
@example(SIMPLE, "-p.jsonl", ["--lm", "-p.jsonl"], ["eldgr"], None)
@example(TWO_LMS, "run", ["pool.jsonl"], ["eldgr"], 5)
def test_the_words_mean_the_run(spec: Spec, out: str, pools: list[str], rules: list[str], limit: int | None) -> None:
    eldgr, evaluate, *words = command_for(spec, out, pools, rules, limit)
    assert (eldgr, evaluate) == ("eldgr", "evaluate")
    command: Any = cli.commands["evaluate"]
    names = cli.context_settings["help_option_names"]  # which a command keeps from the first context that it makes
    options = command.make_context("evaluate", words, help_option_names=names).params
    assert (options["out"], list(options["pools"])) == (Path(out), [Path(name) for name in pools])
    assert (names_in(options["rules"]), options["limit"]) == (tuple(rules), limit)
    values: dict[str, Any] = {**options, **options["set"]}
    assert Settings(**{name: values[name] for name in spec.settings.arguments() if name in values}) == spec.settings
    assert {name: options[name] for name in FREE if options[name]} == {}
    models: dict[Role, str | None] = {role: options[role] for role in ROLES}
    style = (values.get("judge_style", "listwise"), values.get("orders", 1))
    again = Spec(models, options["api_base"], values.get("num_ctx"), style, spec.settings, spec.roles)
    assert again.details() == spec.details()
