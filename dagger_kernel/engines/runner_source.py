"""The runner as it ships with this package: what engines put into a sandbox."""

from __future__ import annotations

import hashlib
from pathlib import Path

from .. import runner

RUNNER_SOURCE = Path(runner.__file__).parent


def runner_digest() -> str:
    """Return the content hash of the runner that ships with this package."""
    digest = hashlib.sha256()
    for path in sorted(RUNNER_SOURCE.rglob("*.py")):
        digest.update(path.relative_to(RUNNER_SOURCE).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
