"""Debian's headless Chromium, driven over its DevTools protocol through a pipe: no driver, no port, no library."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium")
PATIENCE = 30.0
"""Seconds in which a command has to be answered and a condition has to come true."""

_FLAGS = """
--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run
--disable-background-networking --disable-component-update --disable-sync --disable-extensions
--hide-scrollbars --remote-debugging-pipe
""".split()


class Tab:
    """A tab: the `messages` of pages on the console and their errors since the last `open`, and their `requests`."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self.messages, self.requests = list[str](), list[str]()
        self._browser, self._session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.do(method, self._session, self._take, **parameters)

    def open(self, address: str, *, until: str = "document.readyState === 'complete'") -> None:
        """Open an address anew, and wait until an expression is true of the page."""
        self.do("Page.navigate", url="about:blank")
        self.messages.clear()
        self.requests.clear()
        self.do("Page.navigate", url=address)
        self.wait(f"location.href !== 'about:blank' && ({until})")

    def run(self, expression: str) -> Any:
        reply = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, (expression, reply["exceptionDetails"])
        return reply["result"].get("value")

    def wait(self, expression: str) -> None:
        until = time.monotonic() + PATIENCE
        while not self.run(expression):
            assert time.monotonic() < until, f"never true: {expression}"
            time.sleep(0.01)

    def look(self, *, dark: bool = False, width: int = 1280, height: int = 900, media: str = "") -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.do("Emulation.setEmulatedMedia", media=media, features=features)
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.do("Emulation.setDeviceMetricsOverride", **sizes)

    def pdf(self) -> bytes:
        return base64.b64decode(self.do("Page.printToPDF", printBackground=True)["data"])

    def _take(self, event: dict[str, Any]) -> None:
        method, result = event["method"], event["params"]
        if method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(one.get("value", one.get("description"))) for one in result["args"]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(str(result["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.messages.append(result["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(result["request"]["url"])


class Browser:
    """A running Chromium: commands go into one pipe and answers come out of another, each ended by a zero byte."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._number, self._rest = 0, b""

    def tab(self) -> Tab:
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        return Tab(self, self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def do(
        self, method: str, session: str = "", take: Callable[[dict[str, Any]], None] = lambda event: None, **values: Any
    ) -> dict[str, Any]:
        """Give a command, hand the events that come before its answer to `take`, and return the answer."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": values}
        command |= {"sessionId": session} if session else {}
        os.write(self._into, json.dumps(command).encode() + b"\0")
        for message in self._messages():
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                result: dict[str, Any] = message["result"]
                return result
            if "method" in message and message.get("sessionId", "") == session:
                take(message)
        raise AssertionError(f"no answer to {method}")

    def _messages(self) -> Iterator[dict[str, Any]]:
        until = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self._rest:
                one, _, self._rest = self._rest.partition(b"\0")
                yield json.loads(one)
            ready, _, _ = select.select([self._out], [], [], max(0.0, until - time.monotonic()))
            assert ready, "Chromium is silent"
            result = os.read(self._out, 2**20)
            assert result, "Chromium has ended"
            self._rest += result


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    assert BROWSER is not None
    commands, into = map(_high, os.pipe())
    out, answers = map(_high, os.pipe())
    quiet = os.open(os.devnull, os.O_RDWR)
    # It reads its descriptor 3 and writes its descriptor 4.
    places = [(commands, 3), (answers, 4), (quiet, 0), (quiet, 1), (quiet, 2)]
    moves = [(os.POSIX_SPAWN_DUP2, result, place) for result, place in places]
    command = [BROWSER, *_FLAGS, f"--user-data-dir={folder}"]
    process = os.posix_spawn(BROWSER, command, os.environ, file_actions=moves, setpgroup=0)
    for one in (commands, answers, quiet):
        os.close(one)
    browser = Browser(into, out)
    try:
        yield browser
        browser.do("Browser.close")
    finally:
        os.close(into)
        os.close(out)
        _end(process)


def _high(descriptor: int) -> int:
    """The descriptor moved to where no place of a child is; it is closed in children."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return copy


def _end(process: int) -> None:
    """Wait for the browser, which ends when its pipe does, and end its processes where it does not."""
    until = time.monotonic() + PATIENCE
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return
        time.sleep(0.02)
