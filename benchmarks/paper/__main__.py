"""Every table of the paper that has figures, as Markdown, with the results of runs next to it.

    python -m benchmarks.paper [NAME=RUN[:POOL]]...

NAME says which of the paper's data RUN stands for: gsm8k, hotpotqa or confirmation. Notes below each table say what is
comparable. The nine contrasts are computed again from their counts.
"""

import sys

from benchmarks.paper.paper_runs import runs_here
from benchmarks.paper.paper_tables import paper_tables
from eldgr_dspy.errors import EldgrError
from eldgr_dspy.tables.formats import as_markdown

try:
    print(as_markdown(paper_tables(runs_here(sys.argv[1:]))), end="")
except EldgrError as error:
    sys.exit(f"Error: {error}")
