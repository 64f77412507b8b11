"""Write docs/support.md from what runs on this machine: `python -m tests.reference.make_support_table`.

The machine should have all tiers, AMX included; those it lacks would be missing from the page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support.support_table import AVAILABLE, LETTERS, NAMES, PAGE, TYPES, run_cell, table_text


def main() -> None:
    if len(AVAILABLE) < len(LETTERS):
        raise SystemExit(f"This CPU has only the tiers {', '.join(AVAILABLE)}; all of {', '.join(LETTERS)} are needed.")
    cells = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            cells |= {(name, type): run_cell(name, type, Path(folder)) for type in TYPES}
            print(name, *(cells[name, type] or "-" for type in TYPES), flush=True)
    PAGE.write_text(table_text(cells), encoding="utf-8")


if __name__ == "__main__":
    main()
