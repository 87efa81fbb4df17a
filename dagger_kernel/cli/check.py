"""``dagger-kernel check``: whether the log still says what was written."""

from __future__ import annotations

import sys

from . import data, output
from .exits import ExitCode

MANY = 1_000_000


def run(*, as_json: bool) -> None:
    """Verify the hash chain and every blob; exit with `ExitCode.PROBLEM` if something is damaged."""
    with data.opened_log() as store:
        problems = store.verify()
        rows = [] if problems else store.sandboxes(limit=MANY)
    if as_json:
        output.print_json({"ok": not problems, "problems": problems})
    elif problems:
        for problem in problems:
            print(output.clean(problem))
        print(f"{len(problems)} problems. The log is damaged: restore it from a backup.")
    else:
        steps = sum(row.steps for row in rows)
        print(f"The log is intact: {steps} steps of {len(rows)} sandboxes, and all their files.")
    sys.exit(ExitCode.PROBLEM if problems else ExitCode.OK)
