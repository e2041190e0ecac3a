"""A module whose saved state is read within the limits on files: people send each other compiled programs."""

from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.file_limits import MAX_DOCUMENT, MAX_DOCUMENT_VALUES, parsed_json
from eldgr_dspy.files import read_whole


class Saved(dspy.Module):
    """A module that can be saved, and loaded from a file of another person's."""

    def load(self, path: str | Path, *args: Any, **options: Any) -> None:
        """Load what `save` wrote, as `dspy.Module.load` does.

        Raises:
            PoolError: The file is longer, holds more values or is nested deeper than the limits allow.
        """
        if Path(path).suffix == ".json" and Path(path).is_file():
            parsed_json(read_whole(Path(path), MAX_DOCUMENT, "save it anew"), str(path), MAX_DOCUMENT_VALUES)
        super().load(path, *args, **options)
