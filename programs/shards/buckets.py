"""Files in a bucket of an object store: read, downloaded whole, and created only if they do not exist.

A file system has a link or a rename by which the first of two writers is known. An object store has a condition on a
write instead (`If-None-Match: *`): the second writer is refused, and knows it.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.files import replacing
from eldgr_dspy.redaction import redacted_message
from eldgr_dspy.system import is_url

RETRIES = 8
"""How often a request that failed is sent again, after pauses that double from a tenth of a second to fifteen."""

_STORES = ("s3", "gs", "az")
_NO_BUCKET = re.compile("(bucket|container) does not exist")
_TIME = timedelta(minutes=10)  # for one request, which may be a whole shard
_CHECK = "Check the address, the network and the credentials in the environment, then run the same command again"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or the part of it below a prefix.

    Attributes:
        url: Its address, without a slash at the end. store: the client of the library obstore.
    """

    url: str
    store: Any

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none. Raises `OSError` if the store cannot be asked."""
        content = self._content(name)
        if content is None:
            return None
        with self._reached(name, "read"):
            return bytes(content.bytes())

    def fetch(self, name: str, path: Path) -> bool:
        """Download a file whole and return True; remove `path` and return False if the bucket has no such file.

        Raises:
            OSError: the store cannot be asked, or `path` cannot be written.
        """
        content = self._content(name)
        if content is None:
            path.unlink(missing_ok=True)
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file, self._reached(name, "read"):
            for chunk in content.stream():
                file.write(chunk)
        return True

    def create(self, name: str, content: bytes | Path) -> bool:
        """Write a file if it does not exist, whole or not at all, and return whether this was done.

        Raises:
            OSError: the store cannot be asked.
        """
        obstore = _obstore()
        with self._reached(name, "written"):
            try:
                obstore.put(self.store, name, content, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def write(self, name: str, path: Path) -> None:
        """Write a file in place of any other of its name. Raises `OSError` if the store cannot be asked."""
        with self._reached(name, "written"):
            _obstore().put(self.store, name, path)

    def _content(self, name: str) -> Any:
        with self._reached(name, "read"):
            try:
                return _obstore().get(self.store, name)
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise
                return None

    @contextmanager
    def _reached(self, name: str, done: str) -> Iterator[None]:
        """Make an error of the library one that names the file; those of the disk name theirs."""
        try:
            yield
        except (OSError, ValueError, NotImplementedError, _obstore().exceptions.BaseError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise OSError(f"{self.url}/{name} could not be {done}: {_said(error)}. {_CHECK}") from None


def bucket_at(place: str | Path) -> Bucket | None:
    """Return the bucket at an address; None for a path. Nothing is asked yet.

    Credentials and the server are taken from the environment, under the names that the store's own tools use.

    Raises:
        ArgumentError: it is not an address of S3, Google Cloud Storage or Azure, or obstore is not installed.
    """
    if isinstance(place, Path) or not is_url(place):
        return None
    try:
        parts = urlsplit(place)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in _STORES or not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        raise ArgumentError(
            "an address must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX; got "
            f"{_shown(place)}. Credentials are taken from the environment."
        )
    url, obstore = place.rstrip("/"), _obstore()
    # Options of the client, once given, are not completed from the environment.
    client = {"timeout": _TIME, "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("true", "1")}
    try:
        retries = {"max_retries": RETRIES, "retry_timeout": _TIME}
        store = obstore.store.from_url(url, retry_config=retries, client_options=client)
    except (ValueError, obstore.exceptions.BaseError) as error:
        raise ArgumentError(f"{_shown(place)} could not be opened: {_said(error)}. {_CHECK}.") from None
    return Bucket(url, store)


def _obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        raise ArgumentError("A bucket needs the package obstore; run: pip install 'eldgr_dspy[bucket]'") from error
    return obstore


def _said(error: Exception) -> str:
    """Return the first line of an error of the library, whose other lines repeat the request and the reply."""
    return _shown(re.split(r"\n|: <|<", str(error), maxsplit=1)[0].rstrip(" ."))


def _shown(text: str) -> str:
    return brief(redacted_message(text))
