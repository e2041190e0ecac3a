"""Connections that one request at a time uses, so that a reply delivered twice answers only one question.

A server, or a proxy before it, may deliver a reply twice on one connection. If the second copy is late, the client
reads it as the answer to the next request, which was about another question. Then every later answer is shifted by one.
So each reply is checked before another request may use its connection, and after an echo the connection is dropped.
"""

from collections import OrderedDict
from threading import Lock, local
from typing import Any

_REMEMBERED = 1024  # numbers of replies


class Lane(local):
    """A thread's own parts of an LM: its clients, and whether a reply can have been left on their connections.

    That holds for DSPy's native clients. LiteLLM always shares connections, and an engine object belongs to its maker.
    """

    def __init__(self, numbers: "Numbers") -> None:  # called in each thread, with the same object
        self.clients: dict[Any, Any] = {}
        self.fresh = True
        self._numbers = numbers

    def is_echo(self, number: str) -> bool:
        """Record the number that a server gave a reply, and return whether it is an earlier one."""
        fresh, self.fresh = self.fresh, False
        return self._numbers.is_echo(number, fresh)

    def __deepcopy__(self, memo: object) -> "Lane":
        return self  # the copies of an LM ask the same server


class Numbers:
    """Recognises a reply that comes a second time, by the number that the server gave it.

    Nothing can have been left on a fresh connection. If a number is repeated on one, the server gives it to several
    replies: its numbers mean nothing, and are ignored from then on.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._distinct = True
        self._lock = Lock()

    def is_echo(self, number: str, fresh: bool) -> bool:
        """Record a reply, and return whether it is an earlier one."""
        with self._lock:
            if number in self._seen:
                self._distinct &= not fresh
                return self._distinct
            self._seen[number] = None
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            return False
