from __future__ import annotations

import subprocess

import pytest

from .harness import UNSHARE, Room, Zygote


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


def namespaces_work() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False


@pytest.fixture(params=["forked", "cold", "init", "alone"])
def any_room(request, tmp_path, zygote):
    """All ways to start."""
    if request.param in ("init", "alone") and not namespaces_work():
        pytest.skip("no user namespaces here")
    options = {
        "forked": {"zygote": zygote},
        "cold": {},
        "init": {"init": True},
        "alone": {"alone": True},
    }
    room = Room(tmp_path, **options[request.param])
    yield room
    room.close()
