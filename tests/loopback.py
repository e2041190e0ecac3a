"""Serves from threads of this process, for the servers on loopback."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias, TypeVar

S = TypeVar("S", bound=ThreadingHTTPServer)


@contextmanager
def listening(server: S) -> Iterator[S]:
    """Serve inside the block; the server is closed after it."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class QuietHandler(BaseHTTPRequestHandler):
    """Sends a head with headers, whose dashes are underscores here, or a whole answer, or resets; writes no log."""

    def begin(self, status: int = 200, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def whole(self, data: bytes, status: int = 200, kind: str = "application/json") -> None:
        self.begin(status, Content_Type=kind, Content_Length=len(data))
        self.wfile.write(data)

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


Body: TypeAlias = dict[str, Any]
Answer: TypeAlias = "Callable[[Body], str | tuple[int, str]]"


@contextmanager
def openai_server(answer: Answer) -> Iterator[str]:
    """A server of OpenAI's format that says to each request what `answer` makes of it: a text, or a refusal."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            reply = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, text = (200, reply) if isinstance(reply, str) else reply
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            whole = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
            content = whole if status == 200 else {"error": {"message": text, "type": "invalid"}}
            self.whole(json.dumps(content).encode(), status)

    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"
