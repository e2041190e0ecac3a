"""Tables in Markdown and LaTeX: a parser reads back the very cells, whatever a pool or a rule is named."""

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from eldgr_dspy.tables.formats import as_latex, as_markdown, latex_text, markdown_text
from eldgr_dspy.tables.table import Table
from tests.case_tables import tables_of

HOSTILE = r"a|b_c%d&e\f*g~h$i#j{k}l^m<n>o`p[q](r)!s"
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp", "Cn"]), max_size=12)
MARKS = st.text(r"|_%&\*`[]()<>~$#!-+=.:/1{}^\"', ", max_size=12)
CELLS = st.one_of(TEXTS, MARKS)


def read_markdown(text: str) -> tuple[list[str], list[str], list[str]]:
    """The headings, the cells and the paragraphs that a reader of Markdown sees, as plain text."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    headings, cells, notes = list[str](), list[str](), list[str]()
    places = {"heading_open": headings, "th_open": cells, "td_open": cells, "paragraph_open": notes}
    for before, token in pairwise(tokens):
        if token.type == "inline":
            assert before.type in places
            places[before.type].append(plain(token))
    assert {token.tag for token in tokens} <= {"h3", "table", "thead", "tbody", "tr", "th", "td", "p", ""}
    return headings, cells, notes


def plain(token: Token) -> str:
    parts = token.children or []
    assert {part.type for part in parts} <= {"text", "text_special"}, parts
    return "".join(part.content for part in parts)


def one_line(text: str) -> str:
    return " ".join(text.split())


@given(st.lists(CELLS, min_size=2, max_size=2), st.lists(CELLS, min_size=4, max_size=4), CELLS, CELLS)
@example([HOSTILE, "1"], ["\\", "\\|", "a\\", "|"], "# #", "1) a")
@example(["a", "b"], ["-", "---", ":-:", "="], "-", "- a")
def test_markdown_reads_back_as_the_same_cells(headers: list[str], cells: list[str], title: str, note: str) -> None:
    table = Table(title, tuple(headers), (tuple(cells[:2]), tuple(cells[2:])), (note,))
    headings, read, notes = read_markdown(as_markdown([table]))
    assert headings == [one_line(title)]
    assert read == [one_line(cell) for cell in (*headers, *cells)]
    assert notes == [one_line(note)] * bool(one_line(note))


def read_latex(text: str) -> str:
    """What LaTeX would set of an escaped text: knows the commands that are written, and refuses any other."""
    names = "textbackslash textasciitilde textasciicircum textless textgreater textbar textasciigrave char34".split()
    signs = dict(zip(names, '\\~^<>|`"', strict=True))
    output, at = "", 0
    while at < len(text):
        for pattern, value in (
            (r"\\([a-z]+(?:34)?)\{\}", lambda result: signs[result[1]]),
            (r"\\([{}#$%&_])", lambda result: result[1]),
            (r"\$\\Delta\$", lambda result: "Δ"),
            (r"\$-\$", lambda result: "−"),
            (r"\$\\diamond\$", lambda result: "\ufffd"),
            (r"\{\}", lambda result: ""),
            (r"[^\\{}#$%&_~^<>|\"`]", lambda result: result[0]),
        ):
            match = re.compile(pattern).match(text, at)
            if match:
                output, at = output + value(match), match.end()
                break
        else:
            raise AssertionError(f"unescaped at {at}: {text!r}")
    return output


@given(CELLS)
@example(HOSTILE)
@example("--lm ''x'' ,, Δ −2")
@example("Jose\u0301 \ufffd")
def test_latex_sets_the_same_text(cell: str) -> None:
    latex = latex_text(cell)
    assert read_latex(latex) == unicodedata.normalize("NFC", one_line(cell))
    assert not re.search(r"--|''|,,|``", latex)  # which LaTeX would join into one character


def test_a_table_reads_well_as_it_is_and_no_row_in_latex_is_an_argument_of_the_line_before() -> None:
    table = Table("demo: 2", ("rule", "EM %", "Δ"), (("my_rule:f", "50.00", "-2.00 [-4.00, 0.00]"),), ("a|b",))
    assert as_markdown([table]).split("\n") == tables_of("pools")["a table in Markdown"]
    table = Table("50 %", ("rule", "EM"), (("a_b", "1"),), ("note & more",))
    assert as_latex([table]).splitlines() == tables_of("pools")["a table in LaTeX"]
    lines = as_latex([Table("t", ("[x", "y"), (("[1, 2]", "[3, 4]"), ("*", "")))]).splitlines()
    assert [line for line in lines if line.endswith(r"\\")] == [r"{}[x & y \\", r"{}[1, 2] & [3, 4] \\", r"{}* &  \\"]


@pytest.mark.parametrize("show", [markdown_text, latex_text])
@pytest.mark.parametrize("mark", ["\x1b", "\u202e", "\u2066", "\x00", "\ud800"], ids=ascii)
def test_controls_and_marks_of_direction_are_made_visible_on_one_line(show: Callable[[str], str], mark: str) -> None:
    assert show(f"a{mark}b") == f"a[U+{ord(mark):04X}]b"
    assert show(" a\n\n b\t\u2028c ") == "a b c"


@pytest.mark.parametrize("text", ["http://x.example/a", "www.x.example", "[x]: http://x", "![x](y)", "a@b"])
def test_an_address_in_a_name_is_not_a_link(text: str) -> None:
    assert read_markdown(markdown_text(text))[2] == [text]
