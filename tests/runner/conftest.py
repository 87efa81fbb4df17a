from __future__ import annotations

import pytest

from .harness import Room, Zygote


@pytest.fixture(scope="session")
def zygote():
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture
def room(tmp_path, zygote):
    """Steps on one pair of directories, each in a fork of a warm process."""
    room = Room(tmp_path, zygote=zygote)
    yield room
    room.close()


@pytest.fixture
def cold_room(tmp_path):
    """Steps on one pair of directories, each in a fresh interpreter."""
    room = Room(tmp_path)
    yield room
    room.close()


@pytest.fixture(params=["forked", "cold"])
def any_room(request, tmp_path, zygote):
    """Both ways."""
    room = Room(tmp_path, **({"zygote": zygote} if request.param == "forked" else {}))
    yield room
    room.close()
