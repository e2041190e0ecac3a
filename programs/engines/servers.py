"""Which of several servers the next request goes to, and which are passed over because they failed.

Requests are counted, and no clock is read: the same outcomes in the same order lead to the same choices. What is known
of an address is shared by all LMs of the process that use it. Ours.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from eldgr_dspy.errors import ArgumentError

FAILURES = 3
"""How many failures in a row are reported."""

REST, LONGEST_REST = 16, 1024
"""For how many requests a server that failed is passed over: at first, and at most."""

_LOCK = Lock()


@dataclass(eq=False, slots=True, weakref_slot=True)
class Server:
    """A server, and how its requests ended.

    Attributes:
        address: Where it is.
        under_way: Requests that have not ended.
        answered, failed: Requests that ended with an answer, even a refusal, and those that did not.
        in_a_row: Failures since the last answer.
        reported: Whether it ever failed so often in a row that this was reported.
        reason: Why it failed last.
        rest: For how many requests it is still passed over.
        pause: How long its last rest was; the next one is twice as long.
    """

    address: str
    under_way: int = 0
    answered: int = 0
    failed: int = 0
    in_a_row: int = 0
    reported: bool = False
    reason: str = ""
    rest: int = 0
    pause: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return server_at, (self.address,)  # copies of an LM ask the same server


_KNOWN: WeakValueDictionary[str, Server] = WeakValueDictionary()


def server_at(address: str) -> Server:
    """Return what is known of the server at an address."""
    with _LOCK:
        return _KNOWN.setdefault(address, Server(address))


class Servers:
    """Several servers of one model. From any thread."""

    def __init__(self, addresses: Sequence[str]) -> None:
        """Take the addresses, in the order that decides between servers that are equally busy.

        Raises:
            ArgumentError: There is no address, one is given twice, or one is not a text.
        """
        given: Sequence[Any] = addresses
        wrong = [address for address in given if not isinstance(address, str) or not address]
        if wrong or not addresses:
            found = repr(wrong[0]) if wrong else "an empty list"
            raise ArgumentError(
                f"api_base must hold addresses; got {found}. Give one such as http://localhost:8000/v1."
            )
        if twice := [address for address in addresses if addresses.count(address) > 1]:
            shown = twice[0].rpartition("@")[2]  # the part before may be a password
            raise ArgumentError(f"api_base must hold each address once; got {shown!r:.200} twice. Leave one out.")
        self.all = [server_at(address) for address in addresses]

    def take(self, tried: Collection[Server] = ()) -> Server:
        """Return the server that the next request goes to: the one with the fewest under way, and the first of those.

        A server that failed is passed over for `REST` requests, then gets one. If that fails too, it is passed over for
        twice as many. If every server has failed, the one with the fewest failures in a row is asked.

        Args:
            tried: Servers to leave out, unless these are all.
        """
        with _LOCK:
            left = [server for server in self.all if server not in tried] or self.all
            due = [one for one in left if one.in_a_row and not one.rest and not one.under_way]
            chosen = due[0] if due else min(left, key=lambda one: (one.in_a_row, one.under_way))
            for server in self.all:
                server.rest = max(0, server.rest - 1)
            chosen.under_way += 1
            return chosen

    def leave(self, server: Server) -> None:
        """Record that a request ended in a way that says nothing about its server."""
        with _LOCK:
            server.under_way -= 1

    def answer(self, server: Server) -> None:
        """Record that a request was answered: the server is well."""
        with _LOCK:
            server.under_way -= 1
            server.answered += 1
            server.in_a_row = server.rest = server.pause = 0

    def fail(self, server: Server, reason: str) -> bool:
        """Record that a request failed; return whether this is to be reported, which is so once for a server.

        Failures of requests that were under way together make one rest.
        """
        with _LOCK:
            server.under_way -= 1
            server.failed += 1
            server.in_a_row += 1
            server.reason = reason
            if not server.rest:
                server.rest = server.pause = min(2 * server.pause or REST, LONGEST_REST)
            new = server.in_a_row >= FAILURES and not server.reported
            server.reported |= new
            return new

    @property
    def one_is_well(self) -> bool:
        """Whether the last request of some server was answered, or none was sent to it."""
        with _LOCK:
            return any(not server.in_a_row for server in self.all)
