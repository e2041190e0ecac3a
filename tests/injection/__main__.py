"""Tries the battery, prints its results and writes them into the page: `python -m tests.injection`."""

import sys

from tests.injection.battery_table import PAGE, generated, page
from tests.injection.trying import outcomes

if __name__ == "__main__":
    found = list(outcomes())
    sys.stdout.write(generated(found))
    PAGE.write_text(page(PAGE.read_text("utf-8"), found), "utf-8")
