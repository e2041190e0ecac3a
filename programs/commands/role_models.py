"""The models of the roles and the judges of `--judges`, made from what was typed."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.redaction import remember_settings
from eldgr_dspy.words import JudgeStyle, Replies, Role, SchemaUse

_Who = TypeVar("_Who", bound=str)

_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Models:
    """The options for models. `judges` has the named ones, each as it was typed; None for one with only a recording."""

    lm: str | None = None
    judge: str | None = None
    deriver: str | None = None
    repairer: str | None = None
    api_base: str | None = None
    judges: Mapping[str, str | None] = field(default_factory=dict)
    judge_style: JudgeStyle = "listwise"
    orders: int = 1
    num_ctx: int | None = None
    structured: SchemaUse = "auto"
    replies: Replies = "strict"

    @property
    def by_role(self) -> dict[Role, str | None]:
        """The model of each role, None for a heuristic one."""
        models: dict[Role, str | None] = {"judge": self.judge, "deriver": self.deriver, "repairer": self.repairer}
        return {role: self.lm if model is None else model for role, model in models.items()}

    @property
    def styles(self) -> dict[str, tuple[JudgeStyle, str | None]]:
        """The style of each judge with a name, and its model; None for the heuristic one and for a recording."""
        from eldgr_dspy.programs.judges.named import style_of

        return {name: style_of(text, self.judge_style, self.judge or self.lm) for name, text in self.judges.items()}

    def lms(self, models: Mapping[_Who, str | None], others: Iterable[str | None] = ()) -> dict[_Who, Any]:
        """Return the LM of each role or judge that has a model.

        An address or a context is accepted even if only the models in `others` use it.
        """
        from eldgr_dspy.programs.lms.models import is_of_ollama, make_lm, require_ollama

        names: dict[_Who, str] = {role: model for role, model in models.items() if model is not None}
        every = [*dict.fromkeys(model for model in (*names.values(), *others) if model is not None)]
        require_ollama(self.num_ctx, every)
        require_address(self.api_base, every)
        sizes = {model: self.num_ctx if is_of_ollama(model) else None for model in names.values()}
        # The journal is the run's cache, so DSPy's own is off.
        options: dict[str, Any] = {"structured": self.structured, "temperature": 0.0, "cache": False}
        return {role: make_lm(model, self.api_base, num_ctx=sizes[model], **options) for role, model in names.items()}

    def selector(self, settings: Mapping[str, Any]) -> Any:
        """Return a selector under these settings, with these roles."""
        lms = self.lms(self.by_role, [model for _, model in self.styles.values()])
        return self.selector_of(lms, settings, self.judge_style, self.orders)

    def selector_of(self, lms: Mapping[Role, Any], settings: Mapping[str, Any], style: JudgeStyle, orders: int) -> Any:
        """Return a selector with heuristic roles, except those that have an LM, and the judge in a style."""
        from eldgr_dspy.programs.heuristics import heuristic_selector
        from eldgr_dspy.programs.judges.named import judge_in_style
        from eldgr_dspy.programs.selector import Selector

        settings = {**settings, "replies": self.replies}
        selector, full = heuristic_selector(**settings), Selector(**settings)
        source = full if "judge" in lms else selector
        source.judge = judge_in_style(source.judge, style, orders)
        for role, lm in lms.items():
            module = getattr(full, role)
            module.set_lm(lm)
            setattr(selector, role, module)
        return selector

    def asking(self, selector: Any) -> Any:
        """Return the context in which a selector's certificate asks the model for all roles, if it asks any."""
        import dspy

        if self.lm is None or selector.certifier is None:
            return nullcontext()
        return dspy.context(lm=self.lms({"judge": self.lm})["judge"])


def require_address(api_base: str | None, names: Sequence[str]) -> None:
    """Refuse an address if there is no model, or without http:// or https://; Ollama's own engine checks its own."""
    from eldgr_dspy.programs.lms.models import is_of_ollama

    if api_base is None:
        return
    remember_settings({"api_base": api_base})
    address = f"--api-base={api_base.rpartition('@')[2]!r:.200}"  # without what may be a password in it
    if not names:
        raise ArgumentError(
            f"{address} needs a model to ask, but none is given. Add --lm MODEL or a model for a role, or leave the "
            "address out."
        )
    if not _ADDRESS.match(api_base) and not all(map(is_of_ollama, names)):
        raise ArgumentError(
            f"{address} must be an address with http:// or https://, for example http://localhost:8000/v1."
        )


def named_judges(models: Models, settings: Mapping[str, Any], recordings: Collection[str] = ()) -> dict[str, Any]:
    """Return the named judges; only those in `recordings`, with "" for the recording of all roles, may lack a model."""
    from eldgr_dspy.programs.judges.named import PANEL, is_own, make_judge
    from eldgr_dspy.programs.roles import Judge
    from eldgr_dspy.programs.run.fingerprints import predictors

    judges = models.styles
    asking = (choice for choice in models.judges.values() if choice in get_args(JudgeStyle) or is_own(choice or ""))
    if models.judge is not None and judges and not any(asking):
        raise ArgumentError(
            f"--judge={models.judge} is the model of judges in --judges NAME=STYLE, and --judges has no such judge. "
            "Leave --judge out."
        )
    models_by_name = {name: model for name, (_, model) in judges.items()}
    lms = models.lms(models_by_name, models.by_role.values()) if any(models_by_name.values()) else {}
    result: dict[str, Any] = {}
    for name, (style, model) in judges.items():
        choice = models.judges[name]
        if choice is None:
            if not {"", name} & set(recordings):
                raise ArgumentError(
                    f"--judges {name} needs a model or a recording. Give {name}=MODEL or --replay {name}=FILE."
                )
            result[name] = Judge()
        elif choice.startswith(PANEL):
            result[name] = _panel(name, choice.removeprefix(PANEL).split("+"), models)
        elif (judge := make_judge(choice)) is not None:
            if name in lms and predictors(judge):
                judge.set_lm(lms[name])
            result[name] = judge
        elif choice in get_args(JudgeStyle) and model is None:
            raise ArgumentError(
                f"--judges {name}={choice} needs a model. Give {name}={choice}:MODEL, or --judge MODEL."
            )
        else:
            lm: dict[Role, Any] = {"judge": lms[name]} if name in lms else {}
            orders = models.orders if style in ("listwise", "pairwise") else 1
            result[name] = models.selector_of(lm, settings, style, orders).judge
    return result


def _panel(name: str, members: Sequence[str], models: Models) -> Any:
    from eldgr_dspy.programs.judges.named import judge_in_style
    from eldgr_dspy.programs.judges.repeated_judges import Panel
    from eldgr_dspy.programs.roles import Judge

    if len(members) < 2 or not all(members):
        raise ArgumentError(f"--judges {name} must have at least two models. Give {name}=panel:MODEL+MODEL.")
    lms = models.lms({str(n): model for n, model in enumerate(members)})
    judges = [judge_in_style(Judge(), orders=models.orders) for _ in members]
    for judge, lm in zip(judges, lms.values(), strict=True):
        judge.set_lm(lm)
    return Panel(judges)
