"""Read a state directory from outside the sandbox: JSON in, JSON out, nothing unpickled.

``python -m dagger_kernel.runner.state.inspect DIR`` prints it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from .errors import ManifestError
from .manifest import Manifest, load_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_manifest(root: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe the saved state in a directory.

    Parameters
    ----------
    root : path
        The state directory.

    Returns
    -------
    dict
        ``sequence``, ``cell``, ``step``, ``python``, ``variables`` and ``lost``; JSON-able.

    Raises
    ------
    ManifestError
        The directory holds something which is not a valid manifest.
    """
    _, manifest = load_manifest(os.fspath(root))
    return {
        "sequence": manifest.sequence,
        "cell": manifest.cell,
        "step": manifest.step,
        "python": manifest.python,
        "variables": describe_manifest(manifest),
        "lost": manifest.lost,
    }


def describe_manifest(manifest: Manifest) -> list[dict[str, Any]]:
    """List a manifest's variables: name, type, size in bytes, the cell that made them."""
    lost = {entry["name"] for entry in manifest.lost}
    return [
        {
            "name": name,
            "type": entry.type_name,
            "size": entry.size,
            "cell": entry.cell,
            "lost": name in lost,
        }
        for name, entry in manifest.names.items()
        if not name.startswith("_") and "[" not in name
    ]


def main(arguments: Sequence[str]) -> int:
    """Print a state directory's manifest as JSON."""
    if len(arguments) != 1:
        print("usage: python -m dagger_kernel.runner.state.inspect DIR", file=sys.stderr)
        return 2
    try:
        found = read_manifest(arguments[0])
    except ManifestError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
