"""Serves from threads of this process, for the servers on loopback."""

import json
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


Body: TypeAlias = dict[str, Any]
Answer: TypeAlias = "Callable[[Body], str | tuple[int, str]]"


@contextmanager
def openai_server(answer: Answer) -> Iterator[str]:
    """A server of OpenAI's format that says to each request what `answer` makes of it: a text, or a refusal."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            reply = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, text = (200, reply) if isinstance(reply, str) else reply
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            whole = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
            data = json.dumps(whole if status == 200 else {"error": {"message": text, "type": "invalid"}}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"
