"""``dagger-kernel check``: whether log, files and caches still say what was written; caches are repaired."""

from __future__ import annotations

import sys

from dagger_kernel.engines.local.collector import LayerCollector
from dagger_kernel.engines.local.layers import LayerStore
from dagger_kernel.errors import LogIntegrityError
from dagger_kernel.log import SandboxRow
from dagger_kernel.settings import Settings

from . import data, output
from .exits import ExitCode

MANY = 1_000_000
RESTORE = (
    "The log is damaged and is not repaired: stop its kernels and restore it from a backup. Sandboxes without a "
    "problem above can be read and used on."
)


def run(*, as_json: bool) -> None:
    """Verify the hash chain, every blob and every layer; exit with `ExitCode.PROBLEM` if the log is damaged.

    A damaged layer is removed, the log brings it back.
    """
    settings = Settings.load()
    problems, rows = _log(settings)
    repaired = LayerCollector(LayerStore(settings.layers_path)).damaged()
    if as_json:
        output.print_json({"ok": not problems, "problems": problems, "repaired": repaired})
        sys.exit(ExitCode.PROBLEM if problems else ExitCode.OK)
    for line in [*problems, *repaired]:
        print(output.one_line(line))
    if problems:
        print(f"{len(problems)} problems. {RESTORE}")
    else:
        steps = sum(row.steps for row in rows)
        print(f"The log is intact: {steps} steps of {len(rows)} sandboxes, and all their files.")
    sys.exit(ExitCode.PROBLEM if problems else ExitCode.OK)


def _log(settings: Settings) -> tuple[list[str], list[SandboxRow]]:
    try:
        with data.opened_log(settings) as store:
            problems = store.verify()
            return problems, [] if problems else store.sandboxes(limit=MANY)
    except LogIntegrityError as error:
        return [error.what], []  # so damaged that it does not open
