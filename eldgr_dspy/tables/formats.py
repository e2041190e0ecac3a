"""Tables as Markdown, LaTeX, HTML and CSV, in which each cell shows as the text that it is, on one line.

Control characters and those that turn the direction of text become their code points, such as `[U+202E]`.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape

from eldgr_dspy.base.formatting import UNDEFINED
from eldgr_dspy.figures.export import disarm
from eldgr_dspy.showing import printable
from eldgr_dspy.tables.table import Table

_MARKDOWN = re.compile(r"[\\`*_|<>~&$#]|\](?=[(\[:])|(?<=:)/(?=/)|(?<=\bwww)\.", re.IGNORECASE)
"""What Markdown could read as markup; a bracket only where it could end a link's text. On GitHub `$` is mathematics."""
_LIST = re.compile(r"^(\d{0,9})([-+.)])")

_LATEX = {
    "\\": r"\textbackslash{}",
    **{mark: f"\\{mark}" for mark in "{}#$%&_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",  # no shorthand of babel, and in any encoding of fonts
    "`": r"\textasciigrave{}",
    "Δ": r"$\Delta$",
    "−": "$-$",
    "\ufffd": r"$\diamond$",
}
_LATEX_MARKS = re.compile("|".join(map(re.escape, _LATEX)))
_LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")  # -- would become a dash
_MARKUP = re.compile("[&<>\"']").search
_AFTER_BREAK = re.compile(r"^(?=[\[*])")  # a row that begins so would be an argument of the rule or the break before it


def as_markdown(tables: Iterable[Table]) -> str:
    """Return tables in GitHub's Markdown: heading of the third level, lead, table, and notes as paragraphs."""
    return "\n".join(_markdown(table) for table in tables)


def as_latex(tables: Iterable[Table]) -> str:
    """Return tables as LaTeX: a `table` each, title and lead as caption, `booktabs` rules, and its notes below."""
    return "\n".join(_latex(table) for table in tables)


def as_html(table: Table) -> str:
    title = escape(printable(table.title))
    head = _html_head(table.headers)
    is_plain = _is_plain("".join(map("".join, table.rows)).replace(UNDEFINED, ""))
    rows = table.rows if is_plain else [map(html_text, row) for row in table.rows]
    body = "\n".join([_html_row(first, others) for first, *others in rows])
    markup = f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
    box = f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">{markup}</div>'
    notes = "".join([f'\n<p class="note">{html_text(note)}</p>' for note in table.notes])
    return (box if table.rows else f"<h3>{title}</h3>") + notes


@lru_cache(maxsize=64)
def _html_head(headers: tuple[str, ...]) -> str:
    return "".join(f'<th scope="col">{html_text(header)}</th>' for header in headers)


def _html_row(first: str, others: Sequence[str]) -> str:
    own = ' class="own"' if first == "eldgr" else ""
    return f'<tr{own}><th scope="row">{first}</th>{"".join([f"<td>{cell}</td>" for cell in others])}</tr>'


def html_text(text: str) -> str:
    """A text that HTML shows as it is; one that may run from right to left does not turn the text around it."""
    if _is_plain(text):
        return text
    markup = escape(printable(text))
    return markup if text.isascii() else f"<bdi>{markup}</bdi>"


def _is_plain(text: str) -> bool:
    """Whether HTML shows a text as it is: so it is with nearly every row of a table."""
    return text.isascii() and text.isprintable() and not _MARKUP(text)


def as_csv(tables: Iterable[Table]) -> str:
    """Return tables as CSV, each with its title in a line above, and no cell that a spreadsheet runs as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for table in tables:
        for row in ((table.title,), table.headers, *table.rows, ()):
            writer.writerow([disarm(_one_line(cell)) for cell in row])
    return out.getvalue()


def markdown_text(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", _one_line(text))


def latex_text(text: str) -> str:
    """Return a text that LaTeX shows as it is, on one line; a letter and its accent as one character, where one is."""
    line = unicodedata.normalize("NFC", _one_line(text))  # pdfLaTeX knows no accent that stands behind its letter
    safe = _LATEX_MARKS.sub(lambda match: _LATEX[match[0]], _LIGATURES.sub("\0", line))
    return safe.replace("\0", "{}")


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _markdown(table: Table) -> str:
    rules = ["---", *["--:"] * (len(table.headers) - 1)]
    lines = [_row(table.headers), f"| {' | '.join(rules)} |", *map(_row, table.rows)]
    lead = [_paragraph(table.lead), ""] if table.lead else []
    notes = ["\n" + _paragraph(note) for note in table.notes]
    return "\n".join([f"### {markdown_text(table.title)}", "", *lead, *lines, *notes, ""])


def _paragraph(text: str) -> str:
    return _LIST.sub(r"\1\\\2", markdown_text(text))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(markdown_text, cells))} |"


def _latex(table: Table) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(f'{table.title}. {table.lead}' if table.lead else table.title)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.headers) - 1)}}}",
        r"\toprule",
        _cells(table.headers),
        r"\midrule",
        *map(_cells, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip{{\footnotesize {latex_text(note)}\par}}" for note in table.notes),
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _cells(cells: Iterable[str]) -> str:
    return _AFTER_BREAK.sub("{}", f"{' & '.join(map(latex_text, cells))} \\\\")
