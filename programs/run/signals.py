"""Ctrl-C and SIGTERM during a run: a handler notes them, and the run acts when it checks for them.

A handler that raises does so at any point of Python code. In the callback of a weak reference its exception is printed
and forgotten, and the run continues. In an import it can become another error.
"""

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """A context that notes ctrl-C and SIGTERM in the main thread. `look` then calls their handlers.

    Signals that the system handles by itself are left to it. A second signal before `look` is handled at once, because
    the run may never look again: a rule may not return.
    """

    def __init__(self) -> None:
        self._pending = deque[signal.Signals]()
        self._handlers = dict[signal.Signals, Callable[[int, FrameType | None], Any]]()

    def __enter__(self) -> "Signals":
        for number in _NUMBERS if _in_main_thread() else ():
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self.look()

    def look(self) -> None:
        """Call the earlier handler of each noted signal, without a frame. The handler may raise."""
        while self._pending:
            number = self._pending.popleft()
            self._handlers[number](number, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        kind = signal.Signals(number)
        if self._pending:
            self._handlers[kind](number, frame)
        else:
            self._pending.append(kind)


@contextmanager
def hold_signals() -> Iterator[None]:
    """Hold off ctrl-C and SIGTERM, whatever their handlers, if Python allows it: in the main thread."""
    if not _in_main_thread():
        yield
        return
    numbers: list[int] = []
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    for number in before:
        signal.signal(number, lambda number, _: numbers.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if numbers:
            signal.raise_signal(numbers[0])


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
