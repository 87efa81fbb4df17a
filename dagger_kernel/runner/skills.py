"""Skills: folders that the administrator mounted, whose modules can be imported."""

from __future__ import annotations

import os
import sys

PLACE = "/skills"


def find_skills(place: str = PLACE) -> None:
    """Put the skills last on the search path, here and in interpreters that the cell starts."""
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    paths = [os.path.join(place, name) for name in names]
    sys.path += [path for path in paths if path not in sys.path]
    if paths:
        os.environ.setdefault("PYTHONPATH", os.pathsep.join(paths))


def with_skills(entries: list[str], known: list[str]) -> list[str]:
    """Return a search path that was set before a skill was mounted, with the skill's place."""
    new = [path for path in known if path.startswith(f"{PLACE}/") and path not in entries]
    return [*entries, *new]
