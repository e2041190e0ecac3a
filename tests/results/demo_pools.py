"""The demo pools, for figures that are known."""

from pathlib import Path

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts"
