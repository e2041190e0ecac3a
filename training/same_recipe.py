"""A resumed run keeps its original settings: its recipe is written down, and another one is refused on resume."""

import json
from collections.abc import Iterable, Mapping, Sized
from dataclasses import fields
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.file_limits import parsed_json
from eldgr_dspy.files import replacing

FILE: Final = "recipe.json"
"""The name of the record in the folder of a run."""

# Fields that change no number of a run: display, saving, publishing and paths. The data are known by their content.
_FREE: Final = (
    *("output_dir", "run_name", "project", "report_to", "disable_tqdm", "debug", "resume_from_checkpoint"),
    *("log", "save_", "eval", "per_device_eval", "hub_", "push_", "trackio_", "dataloader_", "do_", "dataset", "ddp_"),
    *("vllm_server", "vllm_group_port", "vllm_gpu", "num_completions_to_print", "skip_memory", "local_rank"),
    *("torch_empty_cache", "restore_callback", "load_best", "metric_for", "greater_is", "include_", "prediction_"),
    *("raise_max_steps", "nli_device"),
)


def recipe_of(groups: Iterable[Any], rows: Iterable[Mapping[str, Any]], processes: int) -> dict[str, Any]:
    """Return the fields that shape a run, by name, with a hash of its data and one of its corpus in place of the name.

    Args:
        groups: Dataclasses of fields.
        rows: The data; of a stream, which has no length, only the first row is read.
        processes: How many train together.
    """
    named = {field.name: getattr(group, field.name) for group in groups for field in fields(group)}
    kept = {name: value for name, value in named.items() if not name.startswith(_FREE)}
    data = sha256()
    for row in rows if isinstance(rows, Sized) else islice(rows, 1):
        data.update(json.dumps(row, sort_keys=True, default=str).encode())
    plain: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    if plain.get("corpus"):
        plain["corpus"] = sha256(Path(plain["corpus"]).read_bytes()).hexdigest()[:16]
    return {**plain, "processes": processes, "data": data.hexdigest()[:16]}


def require_same_recipe(folder: Path, recipe: Mapping[str, Any], *, raise_max_steps: bool = False) -> None:
    """Raise unless a run that is resumed has the recipe that it was started with.

    A field that only one of the two knows is ignored: TRL gets new ones with its releases.

    Args:
        folder: Of the run.
        recipe: The one to resume with.
        raise_max_steps: Whether `max_steps` may be larger than it was; never smaller.

    Raises:
        RunChangedError: Saying which fields differ, and how.
        ArgumentError: The folder has no run.
    """
    try:
        begun = parsed_json((folder / FILE).read_bytes(), str(folder / FILE))
    except FileNotFoundError:
        raise ArgumentError(
            f"resume_from_checkpoint is set, but output_dir={str(folder)!r} has no run to resume: it has no {FILE}; "
            "leave the field out to start one, or give the folder of the run."
        ) from None
    before, now = begun.get("max_steps", -1), recipe.get("max_steps", -1)
    more = 0 < before < now
    both = (begun.keys() & recipe.keys()) - ({"max_steps"} if more and raise_max_steps else set())
    changed = differences({name: begun[name] for name in both}, {name: recipe[name] for name in both})
    if changed:
        listed = "\n".join(f"  {line}" for line in changed)
        longer = " To train for more steps, set raise_max_steps: true." if more and not raise_max_steps else ""
        raise RunChangedError(
            f"{folder}: the run to resume was started with another recipe:\n{listed}\n"
            f"Give each of these fields its original value, or another output_dir for a new run.{longer}"
        )


def require_unused(folder: Path) -> None:
    """Raise if a new run would be written among the checkpoints of another one.

    Raises:
        ArgumentError: The folder has checkpoints.
    """
    if any(folder.glob("checkpoint-*")):
        raise ArgumentError(
            f"output_dir={str(folder)!r} has checkpoints of a run; set resume_from_checkpoint: true to resume it, "
            "or give another output_dir."
        )


def write_recipe(folder: Path, recipe: Mapping[str, Any]) -> None:
    """Write down the recipe of a new run."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / FILE) as out:
        out.write(json.dumps(recipe, indent=1).encode("ascii") + b"\n")
