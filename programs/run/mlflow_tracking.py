"""A finished run in MLflow: its figures as metrics, its settings as parameters, its files as artifacts.

MLflow's environment variables set the tracking server and the experiment. Names are those of `summary.json`, with `/`
between and `_` for characters that MLflow does not take.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eldgr_dspy.base.files import safe_name
from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.results.summary_fields import Summary
from eldgr_dspy.programs.run.results import FILES

_FIGURES = ("n", "n_scored", "n_failed", "ties", "rules", "bounds", "audit")


def log_to_mlflow(run: RunRead, summary: Summary) -> str:
    """Log a finished run as a new run in MLflow, named like its directory, and return that run's id."""
    try:
        import mlflow  # pyright: ignore[reportMissingImports]
        from mlflow.exceptions import MlflowException  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError("Logging to MLflow needs mlflow; run: pip install 'eldgr_dspy[mlflow]'") from error

    try:
        with mlflow.start_run(run_name=run.path.resolve().name) as mlflow_run:
            mlflow.log_params(dict(_params(run, summary)))
            mlflow.log_metrics(dict(_metrics(summary)))
            for path in (run.path / name for name in ("journal.jsonl", *FILES)):
                if path.exists():
                    mlflow.log_artifact(str(path))
    except (MlflowException, OSError) as error:
        raise ArgumentError(
            f"{run.path} could not be logged to MLflow ({brief(' '.join(str(error).split()))}); check "
            "MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."
        ) from error
    run_id: str = mlflow_run.info.run_id
    return run_id


def _key(*parts: str) -> str:
    """Return a name that MLflow takes, with any storage."""
    return "/".join(re.sub(r"[^\w.-]", "_", safe_name(part, "_")) for part in parts)


def _params(run: RunRead, summary: Summary) -> Iterator[tuple[str, Any]]:
    for name, value in run.heads_of("settings")["rule"]["details"].items():
        yield _key("settings", name), value
    for name in summary["pools"]:
        for what, value in run.heads_of("pool")[name]["details"].items():
            yield _key("pool", name, what), value
    for role, head in run.heads_of("role").items():
        lm = head["details"].get("lm")
        yield _key("role", role, "module"), head["details"].get("module")
        yield _key("role", role, "model"), lm.get("model", "several") if isinstance(lm, Mapping) else "none"
    yield _key("eldgr_dspy"), " and ".join(run.versions) or "unknown"


def _metrics(summary: Summary) -> Iterator[tuple[str, float]]:
    """Yield every figure that is defined. An undefined one has no metric."""
    for role, sums in summary["consultations"].items():
        yield from _numbers(sums, "consultations", role)
    for name, pool in summary["pools"].items():
        figures: Mapping[str, Any] = {**pool}
        yield from _numbers({key: figures[key] for key in _FIGURES}, name)
        for contrast in pool["contrasts"]:
            yield from _numbers(contrast, name, f"{contrast['rule']}-{contrast['against']}")


def _numbers(figures: Mapping[str, Any], *parts: str) -> Iterator[tuple[str, float]]:
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, *parts, name)
        elif isinstance(value, list):
            yield from _numbers(dict(zip(("low", "high"), value, strict=False)), *parts, name)
        elif isinstance(value, int | float):
            yield _key(*parts, name), float(value)
