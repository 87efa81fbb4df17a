"""The runner as it ships with this package: what engines put into a sandbox."""

from __future__ import annotations

import hashlib
from pathlib import Path

from .. import runner

RUNNER_SOURCE = Path(runner.__file__).parent


def runner_digest() -> str:
    """Return the content hash of the runner that ships with this package."""
    return source_digest(RUNNER_SOURCE)


def source_digest(directory: Path) -> str:
    """Return the content hash of a package's Python files: their paths and bytes."""
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*.py")):
        digest.update(path.relative_to(directory).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
