"""What `save` keeps of a program and `load` takes: people send each other compiled programs.

A file is read within the limits on files. It must have what the program saves: its predictors with their fields, and
the choices of its selectors.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import dspy
from dspy.predict.parameter import Parameter

from eldgr_dspy.base import file_limits
from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.file_limits import MAX_DOCUMENT, MAX_DOCUMENT_VALUES
from eldgr_dspy.base.files import json_fault, read_whole
from eldgr_dspy.errors import ArgumentError, PoolError, describe_failure
from eldgr_dspy.rule.questions import require_hashes

CHOICES = "choices"
"""The name under which choices are saved."""

_METADATA = "metadata"
_OF_PREDICTOR = frozenset("traces train demos signature lm fields".split())  # what DSPy saves of a predictor
_HARMLESS = frozenset({"api_base", "base_url", "metadata"})  # DSPy drops two, and sends no key to the third
_REMEDY = "Make the program as it was when it was saved, or compile and save it anew."


class SavedChoices(Parameter):
    """Choices by name: stated when a program is saved, and compared when it is loaded. Loading changes none.

    As a parameter of DSPy they are kept even if the module is nested in a user's program.
    """

    def __init__(self, of: str, choices: Callable[[], Mapping[str, Any]]) -> None:
        """`of` says whose choices they are, `Selector` or `Sampled`; `choices` returns them."""
        self.of, self._choices = of, choices

    def reset(self) -> None:
        """Do nothing: an optimizer starts from the same choices."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return the choices as plain JSON values."""
        state: dict[str, Any] = json.loads(json.dumps(self._choices()))
        return state

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Compare the choices with saved ones; raise an `ArgumentError` that says what differs."""
        if not isinstance(state, Mapping):
            raise ArgumentError(f"The saved choices of a {self.of} must be a mapping; got {state!r:.80}. Save it anew.")
        require_hashes(state)
        changes = differences(state, self.dump_state())
        if changes:
            listing = "\n".join(f"  {line}" for line in changes)
            raise ArgumentError(
                f"This program was saved with other choices of its {self.of} (saved -> present):\n{listing}\n"
                f"Make the {self.of} with the saved choices, or compile and save it anew."
            )


class Saved(dspy.Module):
    """A module that can be saved, and loaded from a file of another person's."""

    def load(self, path: str | Path, *args: Any, **options: Any) -> None:
        """Load what `save` wrote, as `dspy.Module.load` does.

        Raises:
            PoolError: The file is longer, holds more values or is nested deeper than the limits allow.
            ArgumentError: It is of another program, or of none.
        """
        try:
            if Path(path).suffix == ".json" and Path(path).is_file():
                parsed_json(read_whole(Path(path), MAX_DOCUMENT, "save it anew"), str(path), MAX_DOCUMENT_VALUES)
            super().load(path, *args, **options)
        except (LookupError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ArgumentError(
                f"{path} must be what save wrote for a {type(self).__name__}; reading it raised "
                f"{describe_failure(error)}. {_REMEDY}"
            ) from error

    def load_state(self, state: Mapping[str, Any], **options: Any) -> None:
        """Load a state that has what this program saves, no less and no more.

        Raises:
            ArgumentError: It has other choices, lacks a predictor or the choices, or has others; or a predictor has
                another number of fields.
        """
        own = dict(self.named_parameters())
        for name, one in own.items():
            if isinstance(one, SavedChoices) and name in state:
                one.load_state(state[name])
        lacks, extra = own.keys() - state.keys(), state.keys() - own.keys() - {_METADATA}
        if lacks or extra:
            fault = " and ".join([*_name_keys("lacks", lacks), *_name_keys("has", extra)])
            raise ArgumentError(
                f"The saved program must have the keys of this {type(self).__name__}; it {fault}. {_REMEDY}"
            )
        predictors: list[tuple[str, Any]] = [(name, one) for name, one in own.items() if isinstance(one, dspy.Predict)]
        for name, one in predictors:
            fields, n = one.signature.fields, len(state[name]["signature"]["fields"])
            if n != len(fields):
                raise ArgumentError(
                    f"The saved {name} must have the fields {', '.join(fields)}; it has {n} fields. {_REMEDY}"
                )
        super().load_state(state, **options)


def parsed_json(data: bytes, where: str, most: int) -> Any:
    """Return what a file holds. Refuse one that would set more of a predictor than DSPy saves, or name an address.

    DSPy sets any attribute that a file names, and would send a key to the `api_base` in a `config` or in `fallbacks`.
    `Saved` calls this by the name of the reader in `file_limits`: its source is part of the identity of its roles.
    """
    try:
        saved = file_limits.parsed_json(data, where, most)
    except PoolError:
        raise
    except ValueError as error:
        raise ArgumentError(
            f"{where} must be JSON that save wrote; got {json_fault(data, error)}. {_REMEDY}"
        ) from error
    for name, state in saved.items() if isinstance(saved, dict) else ():
        if isinstance(state, dict) and "signature" in state:
            if extra := state.keys() - _OF_PREDICTOR:
                raise ArgumentError(
                    f"{where}: the saved {name:.80} must have only {', '.join(sorted(_OF_PREDICTOR))}; it has "
                    f"{', '.join(f'{key!r:.80}' for key in sorted(extra))}. {_REMEDY}"
                )
            lm = state.get("lm") or {}
            if any(_names_address(value) for key, value in lm.items() if key not in _HARMLESS):
                raise ArgumentError(f"{where}: the LM of the saved {name:.80} must name no further address. {_REMEDY}")
    return saved


def _names_address(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key in ("api_base", "base_url") or _names_address(inner) for key, inner in value.items())
    return any(map(_names_address, value)) if isinstance(value, list) else "://" in str(value)


def _name_keys(verb: str, keys: Iterable[str]) -> list[str]:
    return [f"{verb} {', '.join(f'{key!r:.80}' for key in sorted(keys))}"] if keys else []
