"""Connections that one request at a time uses, so that a reply which is delivered twice answers one question.

A server, or what stands before it, may deliver a reply twice on one connection. If the second copy is late, the client
reads it as the answer to the next request, which was about another question, and that one's answer as the answer to the
request after it. So a reply is looked at before anybody else may use its connection, and after an echo the connection
is given up.
"""

from collections import OrderedDict
from threading import Lock, local
from typing import Any

_REMEMBERED = 1024  # numbers of replies


class Lane(local):
    """What a thread has to itself of an LM: its clients, and whether a reply can have been left on their connections.

    That holds for DSPy's native clients. LiteLLM keeps connections in common whatever it is told, and an engine object
    belongs to whoever made it.
    """

    def __init__(self, numbers: "Numbers") -> None:  # called in each thread, with the same object
        self.clients: dict[Any, Any] = {}
        self.fresh = True
        self._numbers = numbers

    def is_echo(self, number: str) -> bool:
        """Take the number that a server gave a reply, and return whether it is an earlier one."""
        fresh, self.fresh = self.fresh, False
        return self._numbers.is_echo(number, fresh)

    def __deepcopy__(self, memo: object) -> "Lane":
        return self  # the copies of an LM ask the same server


class Numbers:
    """Knows a reply that comes a second time by the number that the server gave it.

    Nothing can have been left on a fresh connection. Where a number comes again on one, it is the server that gives it
    to several replies: its numbers say nothing, and are not looked at any more.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._distinct = True
        self._lock = Lock()

    def is_echo(self, number: str, fresh: bool) -> bool:
        """Take a reply, and return whether it is an earlier one."""
        with self._lock:
            if number in self._seen:
                self._distinct &= not fresh
                return self._distinct
            self._seen[number] = None
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            return False
