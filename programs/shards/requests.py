"""Requests that all shards of a directory may send: one ledger, from which each process reserves some.

A reservation is on the disk before its first request is sent. So the limit holds over all processes and at any kill. A
shard that ends in order gives back what it did not send; one that was killed does so when it is resumed.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from eldgr_dspy.errors import JournalError, RunLockedError, RunStoppedError
from eldgr_dspy.files import replacing
from eldgr_dspy.journal import Journal
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.run.reservations import Reserved
from eldgr_dspy.system import refusal

REQUESTS = "requests.json"
_PATIENCE = 60.0  # seconds; a reservation takes a few milliseconds


class SharedReserved(Reserved):
    """How many requests of a shard may have been sent; those of all shards together are limited."""

    def __init__(self, journal: Journal, ledger: Path, shard: str, most: int | None) -> None:
        """Read what the shard's journal states.

        Args:
            journal: The journal of the shard. ledger: the file of all shards. shard: its name.
            most: How many requests all shards may send; None for any number.
        """
        super().__init__(journal)
        self._ledger, self._shard, self._most = ledger, shard, most

    def extend(self, sent: int, least: int = 0) -> None:
        """Reserve up to `sent` requests in all for this shard, or as many as are left, but `least`.

        Raises:
            RunStoppedError: fewer than `least` are left, or the disk cannot be written.
        """
        try:
            with _alone(self._ledger):
                known = _read(self._ledger)
                others = sum(count for shard, count in known.items() if shard != self._shard)
                granted = sent  # if it is less than before, the rest is given back
                if self._most is not None and sent > self.sent:
                    granted = min(sent, max(least - 1, self._most - others))
                if granted < least:
                    raise RunStoppedError(
                        f"{others + granted:,} requests were sent or reserved by the shards, and --max-calls allows "
                        f"{self._most:,}; give a higher limit to resume."
                    )
                _write(self._ledger, {**known, self._shard: granted})
        except OSError as error:
            raise RunStoppedError(refusal(error)) from error
        except RunLockedError as error:
            raise RunStoppedError(str(error)) from error
        super().extend(granted)


def count_sent(ledger: Path, shard: str, sent: int) -> None:
    """Enter how many requests a shard that is done has sent, if they are more than it had reserved.

    A shard that is run without a limit reserves none.
    """
    with _alone(ledger):
        known = _read(ledger)
        if sent > known.get(shard, 0):
            _write(ledger, {**known, shard: sent})


@contextmanager
def _alone(ledger: Path) -> Iterator[None]:
    busy = f"{ledger}: another process is writing to it. Wait for it."
    with locked(ledger.with_name(f".{ledger.name}.lock"), busy, _PATIENCE):
        yield


def _read(ledger: Path) -> dict[str, int]:
    try:
        known = json.loads(ledger.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{ledger}: not what eldgr evaluate writes ({error}). Restore it from a copy.") from error
    if not isinstance(known, dict) or any(type(count) is not int or count < 0 for count in known.values()):
        raise JournalError(f"{ledger}: must have a count for each shard. Restore it from a copy.")
    return known


def _write(ledger: Path, known: Mapping[str, int]) -> None:
    with replacing(ledger) as file:
        file.write(json.dumps(dict(sorted(known.items())), indent=0).encode("ascii") + b"\n")
