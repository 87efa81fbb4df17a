"""A data directory for one run of a benchmark."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def data_directory(name: str, base: str | None) -> Iterator[Path]:
    """Make a data directory for the local engine, with the base of another one if that is named; remove it after."""
    os.environ["DAGGER_KERNEL_ENGINE"] = "local"
    with tempfile.TemporaryDirectory(
        prefix=f"dagger-kernel-{name}-", ignore_cleanup_errors=True
    ) as scratch:
        data_dir = Path(scratch) / "data"
        if base:
            from tests.conftest import borrow_base

            borrow_base(Path(base).resolve(), data_dir)
        yield data_dir
