"""The files of the package."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ROOMS = ("signatures", "programs", "training")


def sources() -> list[tuple[Path, str]]:
    """Every Python file of the package, by its real path, and the name that it is installed as."""
    folders = [ROOT / folder for folder in ("eldgr_dspy", *ROOMS)]  # rglob does not follow the links
    return [(path, module_name(path)) for folder in folders for path in sorted(folder.rglob("*.py"))]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "eldgr_dspy" else ("eldgr_dspy", *parts)).removesuffix(".__init__")
