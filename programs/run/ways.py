"""Every way through what asks roles, where each reply is one of a few."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from eldgr_dspy.consultations import Reply
from eldgr_dspy.words import Role

T = TypeVar("T")

Ask = Callable[[Role], Reply]


class _AskedError(Exception):
    """A role is asked whose reply is open."""


def every_way(
    run: Callable[[Ask], T], given: Mapping[Role, Reply], possible: Mapping[Role, Sequence[Reply]]
) -> Iterator[tuple[Mapping[Role, Reply], T]]:
    """Yield each way through `run`: what was replied, in the order in which it was asked, and what it came to.

    Args:
        run: Asks roles one after another; it is begun anew for each reply.
        given: The replies that are known beforehand.
        possible: What each of the other roles may reply.
    """
    asked: list[Role] = []

    def ask(role: Role) -> Reply:
        asked.append(role)
        if role not in given:
            raise _AskedError
        return given[role]

    try:
        came = run(ask)
    except _AskedError:
        for reply in possible[asked[-1]]:
            yield from every_way(run, {**given, asked[-1]: reply}, possible)
    else:
        yield given, came
