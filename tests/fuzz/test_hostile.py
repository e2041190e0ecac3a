"""The fuzz target holds on its seeds, on what is made of their parts, and on whatever was found once."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz import hostile
from tests.fuzz.hostile import ADAPTERS, EVIDENCE, ITEM, ORDERS, PART, POOL, SEEDS, compose, once

BRANCHES = {"consensus", "judge", "repair"}
ERRORS = {"AdapterParseError", "ReplyRejectedError", "ReplyError"}
"""What comes of a reply that cannot be read, under `on_error="raise"`."""

WAYS = {"strict": 0, "without DSPy": ADAPTERS.index(hostile.DIRECT), "JSON": 9, "chat": 10, "XML": 11}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_a_seed_breaks_no_law(seed: bytes) -> None:
    assert once(seed) in BRANCHES


@each_way
def test_what_was_asked_for_is_read_and_changes_the_answer(way: int) -> None:
    """Otherwise the target would only ever see abstentions."""
    write = {WAYS["chat"]: chat, WAYS["XML"]: xml}.get(way, json.dumps)
    verdict, span = write(hostile.VERDICT), write(hostile.SPAN)
    assert once(compose(verdict, span, chr(way), pool=POOL, evidence=EVIDENCE)) == "judge"
    assert once(compose("", span, chr(way), pool=POOL, evidence=EVIDENCE)) == "repair"
    assert once(compose("", "", chr(way), pool=POOL, evidence=EVIDENCE)) == "consensus"


def chat(reply: dict[str, Any]) -> str:
    return "".join(f"[[ ## {name} ## ]]\n{bare(value)}\n\n" for name, value in reply.items())


def xml(reply: dict[str, Any]) -> str:
    return "".join(f"<{name}>{bare(value)}</{name}>" for name, value in reply.items())


def bare(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


PIECES = [piece for seed in SEEDS for piece in seed.decode("utf-8", "surrogatepass").split(PART) if piece]
pieces = st.sampled_from(PIECES)
texts = pieces | st.text(max_size=20) | st.tuples(pieces, st.text(max_size=3)).map("".join)
items = st.lists(texts, max_size=4).map(ITEM.join)


@pytest.mark.law("no_lm_text_breaks_a_law", "property")
@given(st.tuples(st.text(max_size=9), texts, texts, texts, items, items).map(PART.join))
def test_no_text_of_an_lm_a_candidate_a_question_or_a_passage_breaks_a_law(text: str) -> None:
    assert once(text.encode("utf-8", "surrogatepass")) in BRANCHES | ERRORS


@pytest.mark.law("no_lm_text_breaks_a_law", "property")
@given(st.binary(max_size=60))
@example(b"")
@example(b"\xff\x1e\xed\xa0\x80\x1e\x00")
def test_no_bytes_break_a_law(data: bytes) -> None:
    assert once(data) in BRANCHES | ERRORS


@each_way
@pytest.mark.parametrize("order", ORDERS, ids=range(len(ORDERS)))
def test_an_order_changes_nothing_where_roles_are_silent(way: int, order: str) -> None:
    # hazards 69, 70, 71, 72, 73, 75, 78
    assert once(compose("", "", chr(way), order, ITEM.join(("Dubai", "Dubai", order)), order)) == "consensus"
