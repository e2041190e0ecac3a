"""A server with the protocol of S3 on this machine, whose faults a test chooses."""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any
from urllib.request import Request, urlopen

import obstore
import pytest
from obstore.store import from_url

SECRET = "w7Jq-0aXz-4471-secret"
FAULT = "500 Internal Server Error"

Fault = Callable[[str, str], bool]
"""Says of a request, by its method and path, whether it fails."""


class Server:
    """Requests are answered one after the other, so that a condition is checked and a file written in one step.

    Attributes:
        fails: Which requests are answered with an error of the server. drops: which are not answered at all.
        forgets: Which are carried out and not answered.
        unconditional: Whether conditions are ignored.
    """

    def __init__(self, answer: Any) -> None:
        self.fails: Fault | None = None
        self.drops: Fault | None = None
        self.forgets: Fault | None = None
        self.unconditional = False
        self._answer, self._lock = answer, Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        request = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._lock:
            for fault in (self.fails, self.drops):
                if fault is not None and fault(*request):
                    return _failed(environ, start, dropped=fault is self.drops)
            if self.unconditional:
                environ.pop("HTTP_IF_NONE_MATCH", None)
            if self.forgets is not None and self.forgets(*request):
                list(self._answer(environ, lambda *_: None))
                return _failed(environ, start, dropped=True)
            return list(self._answer(environ, start))

    def reset(self) -> None:
        """Let every request be answered."""
        self.fails, self.drops, self.forgets, self.unconditional = None, None, None, False


def _failed(environ: dict[str, Any], start: Callable[..., Any], *, dropped: bool) -> list[bytes]:
    if dropped:
        environ["werkzeug.socket"].shutdown(2)
    start(FAULT, [("Content-Length", "0")])
    return []


@contextmanager
def serving() -> Iterator[tuple[Server, str]]:
    """A server, and its address."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Silent(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            """Print nothing."""

    server = Server(DomainDispatcherApplication(create_backend_app))
    http = make_server("127.0.0.1", 0, server, threaded=True, request_handler=Silent)
    thread = Thread(target=http.serve_forever)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def new_bucket(address: str, patch: pytest.MonkeyPatch, bucket: str | None = None) -> str:
    """Make a bucket, and let the environment lead to its server; return the address of shards in it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    stated = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1", "ALLOW_HTTP": "true"}
    for name, value in {**stated, "ENDPOINT_URL": address}.items():
        patch.setenv(f"AWS_{name}", value)
    bucket = bucket or f"shards-{secrets.token_hex(4)}"
    with urlopen(Request(f"{address}/{bucket}", method="PUT")) as answer:
        answer.read()
    return f"s3://{bucket}/of/capitals"


def names(url: str) -> list[str]:
    """The names of the files below an address."""
    store = from_url(url)
    return sorted(one["path"] for part in obstore.list(store) for one in part)


def content(url: str, name: str) -> bytes:
    """The content of a file."""
    return bytes(obstore.get(from_url(url), name).bytes())


def edit(url: str, name: str, data: bytes | None) -> None:
    """Replace the content of a file, or delete it."""
    if data is None:
        obstore.delete(from_url(url), name)
    else:
        obstore.put(from_url(url), name, data)
