"""The judges of `--judges`, as modules."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.commands.options import Models
from eldgr_dspy.words import JudgeStyle, Role


def named_judges(models: Models, settings: Mapping[str, Any], recorded: Collection[str] = ()) -> dict[str, Any]:
    """Return the named judges.

    Args:
        models: The options for models. settings: those of the rule.
        recorded: The judges that have a recording, with "" for the recording of all roles; only these may lack a model.

    Raises:
        ArgumentError: a judge lacks a model, or no judge uses the model of --judge.
    """
    from eldgr_dspy.programs.judges.named import PANEL, is_own, judge_named
    from eldgr_dspy.programs.roles import Judge
    from eldgr_dspy.programs.run.fingerprints import predictors

    judges = models.styles
    asking = (choice for choice in models.judges.values() if choice in get_args(JudgeStyle) or is_own(choice or ""))
    if models.judge is not None and judges and not any(asking):
        raise ArgumentError(
            f"--judge={models.judge} is for judges that are given as NAME=STYLE, and --judges has none of these. Leave "
            "--judge out."
        )
    models_by_name = {name: model for name, (_, model) in judges.items()}
    lms = models.lms(models_by_name, models.named.values()) if any(models_by_name.values()) else {}
    result: dict[str, Any] = {}
    for name, (style, model) in judges.items():
        choice = models.judges[name]
        if choice is None:
            if not {"", name} & set(recorded):
                raise ArgumentError(
                    f"--judges {name} needs a model or a recording. Give {name}=MODEL or --replay {name}=FILE."
                )
            result[name] = Judge()
        elif choice.startswith(PANEL):
            result[name] = _panel(name, choice.removeprefix(PANEL).split("+"), models)
        elif (named := judge_named(choice)) is not None:
            if name in lms and predictors(named):
                named.set_lm(lms[name])
            result[name] = named
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
    """Return a panel of models, by majority."""
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
