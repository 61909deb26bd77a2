"""The result of a query as a table on the terminal that changes in place."""

from __future__ import annotations

import shutil
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.table import TableResult

_DRAWN_EVERY_S = 0.2
_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def show_table(result: TableResult) -> None:
    """Show the table that the changes make, until no more come."""
    live = result.live()
    failures: list[BaseException] = []
    reader = threading.Thread(target=_read, args=(live, failures), name="penstock-sql-reader", daemon=True)
    reader.start()
    sys.stdout.write("\x1b[2J")
    drawn = -1
    while True:
        reader.join(_DRAWN_EVERY_S)
        is_over = not reader.is_alive()
        if live.changes != drawn or is_over:
            drawn = live.changes
            size = shutil.get_terminal_size()
            text = "\n".join(line[: size.columns] for line in live.lines(size.lines - 2))
            state = "no more changes" if is_over else "Ctrl-C ends the query"
            sys.stdout.write(f"{_HOME_AND_CLEAR}{text}\n{drawn} changes; {state}\n")
            sys.stdout.flush()
        if is_over:
            break
    if failures:
        raise failures[0]


def _read(live: Any, failures: list[BaseException]) -> None:
    try:
        live.read()
    except Exception as error:  # Raised by the thread that shows the table.
        failures.append(error)
