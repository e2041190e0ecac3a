"""Tries the battery, prints its results and writes them into the page: `python -m tests.injection`."""

import sys

from tests.injection.battery_table import PAGE, page, render
from tests.injection.trying import outcomes

if __name__ == "__main__":
    results = list(outcomes())
    sys.stdout.write(render(results))
    PAGE.write_text(page(PAGE.read_text("utf-8"), results), "utf-8")
