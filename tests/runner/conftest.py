from __future__ import annotations

import pytest

from .harness import Room


@pytest.fixture
def room(tmp_path):
    """Steps on one pair of directories, each in a fresh interpreter."""
    room = Room(tmp_path)
    yield room
    room.close()
