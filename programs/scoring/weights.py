"""Find a model in a folder or in the cache of Hugging Face, or fetch it there; and identify which model it is.

Weights are read from safetensors alone: the older files are pickles, and a pickle from outside can run code.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from eldgr_dspy.errors import ArgumentError

_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
_HEX = 12


def find_model(model: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a model, given a folder or a name on the Hub; `revision` is a branch, tag or commit."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        folder = _snapshot(str(model), revision)
    if lacking := _lacking(folder):
        raise ArgumentError(
            f"model={str(model)!r} is the folder {str(folder)!r}, which has no {' and no '.join(lacking)}; give a "
            "folder that holds a whole model with its weights as safetensors."
        )
    return folder


def _snapshot(model: str, revision: str | None) -> Path:
    """Return the folder of a model in the cache. Left alone, the Hub's library asks the network first, and waits."""
    from huggingface_hub import snapshot_download

    reason: Exception | None = None
    for offline in (True, False):
        try:
            place = snapshot_download(model, revision=revision, local_files_only=offline, allow_patterns=list(_FILES))
        except (OSError, ValueError) as error:  # a wrong name, no network, no such model or revision
            reason = error
            continue
        if not (offline and _lacking(Path(place))):
            return Path(place)
    if len(Path(model).parts) > 2 or model.startswith((".", "~")):
        raise ArgumentError(
            f"model={model!r} must be a folder on this disk; give the folder that holds the model's config.json."
        ) from reason
    at = f" --revision {revision}" if revision else ""
    raise ArgumentError(
        f"model={model!r} is not on this disk and could not be fetched; where there is a network, run `hf download "
        f"{model}{at} --exclude '*/*' --exclude '*.bin' --local-dir nli`, bring the folder nli here, and give its path."
    ) from reason


def _lacking(folder: Path) -> list[str]:
    return [kind for kind in ("config.json", "*.safetensors") if not any(folder.glob(kind))]


def revision_of(folder: Path, files: Iterable[str] = _FILES) -> str:
    """Return what identifies the model in a folder: its commit in the cache of the Hub, else a digest of files."""
    if commit := commit_of(folder):
        return commit[:_HEX]
    whole = hashlib.sha256()
    for path in sorted(path for kind in files for path in folder.glob(kind)):
        with path.open("rb") as file:
            whole.update(f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()};".encode())
    return whole.hexdigest()[:_HEX]


def commit_of(folder: Path) -> str | None:
    """Return the commit of a model in the cache of the Hub; None for a folder elsewhere."""
    return folder.name if folder.parent.name == "snapshots" else None


def tensor_names(folder: Path) -> set[str]:
    """Return the names of the tensors that the weights of a folder hold."""
    from safetensors import safe_open

    names = set[str]()
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "np") as file:
            names.update(file.keys())
    return names
