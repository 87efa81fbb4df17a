"""``dagger-kernel check``: whether the log still says what was written."""

from __future__ import annotations

import sys
from dataclasses import asdict, is_dataclass
from typing import Any

from . import data, output
from .exits import ExitCode


def run(*, as_json: bool) -> None:
    """Verify the hash chain and every blob; exit with `ExitCode.PROBLEM` if something is damaged."""
    with data.opened_log() as store:
        report = store.verify()
    problems = [_text(problem) for problem in getattr(report, "problems", report)]
    facts = _facts(report)
    if as_json:
        output.print_json({"ok": not problems, **facts, "problems": problems})
    else:
        for problem in problems:
            print(output.clean(problem))
        counted = ", ".join(f"{value} {name}" for name, value in facts.items())
        state = f"{len(problems)} problems found" if problems else "The log is intact"
        print(f"{state}{f' ({counted})' if counted else ''}.")
    sys.exit(ExitCode.PROBLEM if problems else ExitCode.OK)


def _facts(report: Any) -> dict[str, int]:
    values = asdict(report) if is_dataclass(report) and not isinstance(report, type) else {}
    return {name: value for name, value in values.items() if isinstance(value, int)}


def _text(problem: Any) -> str:
    return problem if isinstance(problem, str) else str(problem)
