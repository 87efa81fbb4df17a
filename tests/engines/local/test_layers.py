"""Layers on disk: found by key, squashed without changing what they show, evicted."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagger_kernel.engines.local.container import bwrap_path
from dagger_kernel.engines.local.layers import FANOUT, Layer, LayerStore, squash
from dagger_kernel.engines.local.view import View
from dagger_kernel.steps import child_key, root_key

ROOT = Layer(root_key("b", "r"), "", 0, (), "b")


def grow(store, parent, fill):
    room = store.new_room()
    fill(store.root / room / "fs" / "home/sandbox")
    return store.commit(room, child_key(parent.key, str(parent.depth)), parent)


def test_a_committed_layer_is_found_by_its_key(tmp_path):
    store = LayerStore(tmp_path)
    layer = grow(store, ROOT, lambda home: (home / "f").write_text("x"))
    assert store.get(layer.key) == layer
    assert store.get("0" * 64) is None


def test_a_layer_whose_parts_are_gone_is_not_there(tmp_path):
    store = LayerStore(tmp_path)
    one = grow(store, ROOT, lambda home: None)
    two = grow(store, one, lambda home: None)
    assert store.evict([one.key]) == 1
    assert store.get(two.key) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 1}', '{"key": "other", "parent": ""}'])
def test_a_damaged_record_is_a_missing_layer(tmp_path, damage):
    store = LayerStore(tmp_path)
    layer = grow(store, ROOT, lambda home: None)
    (store.path(layer.key).parent / "layer.json").write_text(damage)
    assert store.get(layer.key) is None


def test_a_layer_that_may_not_be_on_the_disk_does_not_outlive_the_machines_run(
    tmp_path, monkeypatch
):
    from dagger_kernel.engines.local import layers

    store = LayerStore(tmp_path)
    settled = grow(store, ROOT, lambda home: None)
    store.settle()
    unsettled = grow(store, settled, lambda home: None)
    assert store.get(unsettled.key) is not None
    monkeypatch.setattr(layers, "boot_id", lambda: "the next run")
    assert store.get(settled.key) is not None
    assert store.get(unsettled.key) is None


def test_the_second_of_two_equal_commits_gives_way(tmp_path):
    store = LayerStore(tmp_path)
    rooms = [store.new_room() for _ in range(2)]
    key = child_key(ROOT.key, "same")
    first = store.commit(rooms[0], key, ROOT)
    assert store.commit(rooms[1], key, ROOT) == first
    assert [name for name in os.listdir(tmp_path) if name.startswith("room-")] == []


def test_the_stack_stays_short_and_shows_the_same(tmp_path):
    store, layer = LayerStore(tmp_path), ROOT
    (tmp_path / "base" / "home/sandbox").mkdir(parents=True)
    for number in range(FANOUT * FANOUT + 3):
        layer = grow(store, layer, lambda home, n=number: (home / f"f{n}").write_text(str(n)))
        assert len(layer.lowers) < 3 * FANOUT
    stack = [store.root / name / "fs" for name in layer.lowers]
    assert len(stack) == 4
    assert len(View([*stack, tmp_path / "base"]).list("")) == FANOUT * FANOUT + 3


def test_directories_nobody_can_enter_are_removed(tmp_path):
    store = LayerStore(tmp_path)

    def fill(home):
        (home / "locked").mkdir()
        (home / "locked" / "f").write_text("x")
        (home / "locked").chmod(0)

    layer = grow(store, ROOT, fill)
    store.evict([layer.key])
    assert set(os.listdir(tmp_path)) <= {".gate"}


# What one layer does to a small tree; names collide on purpose.
NAMES = st.sampled_from(["a", "b", "a/c", "a/d", "a/c/e"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["write", "mkdir", "remove", "link"]), NAMES), min_size=1, max_size=6
)


def apply(root, changes):
    """Do changes on a mounted tree, as a shell would."""
    script = ["cd /m"]
    for number, (what, name) in enumerate(changes):
        script.append(
            {
                "write": f"mkdir -p $(dirname {name}) && rm -rf {name} && echo {number} > {name}",
                "mkdir": f"mkdir -p $(dirname {name}) && rm -rf {name} && mkdir {name}",
                "remove": f"rm -rf {name}",
                "link": f"mkdir -p $(dirname {name}) && rm -rf {name} && ln -s /etc {name}",
            }[what]
        )
    return " ; ".join(script) + " ; true"


def mounted(stack, upper, work, script):
    command = [
        bwrap_path(),
        "--unshare-all",
        "--uid",
        "0",
        "--gid",
        "0",
        "--ro-bind",
        "/usr",
        "/usr",
    ]
    command += ["--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"]
    command += ["--symlink", "usr/lib64", "/lib64"]
    for lower in reversed(stack):
        command += ["--overlay-src", str(lower)]
    command += ["--overlay", str(upper), str(work), "/m"] if upper else ["--ro-overlay", "/m"]
    done = subprocess.run([*command, "--", "sh", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


LISTING = "cd /m && find . -printf '%P %y\\n' | sort && find . -type f | sort | xargs -r cat"


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(layers=st.lists(CHANGES, min_size=3, max_size=4))
def test_a_squashed_group_shows_what_the_group_showed(tmp_path_factory, layers):
    scratch = tmp_path_factory.mktemp("squash")
    base = scratch / "base"
    base.mkdir()
    stack = [base]
    for number, changes in enumerate(layers):
        upper, work = scratch / f"u{number}", scratch / f"w{number}"
        upper.mkdir()
        work.mkdir()
        mounted(stack, upper, work, apply(upper, changes))
        stack.insert(0, upper)
    before = mounted(stack, None, None, LISTING)
    merged = scratch / "merged"
    squash(stack[:2], merged)
    assert mounted([merged, *stack[2:]], None, None, LISTING) == before


def test_whiteouts_and_opaque_directories_survive_a_squash(tmp_path):
    lower, upper, merged = tmp_path / "l", tmp_path / "u", tmp_path / "m"
    for directory in (lower / "home/sandbox/d", upper / "home/sandbox/d"):
        directory.mkdir(parents=True)
    (lower / "home/sandbox/d/old").write_text("x")
    (lower / "home/sandbox/f").write_text("x")
    os.mknod(upper / "home/sandbox/f", stat.S_IFCHR, os.makedev(0, 0))
    os.setxattr(upper / "home/sandbox/d", "user.overlay.opaque", b"y")
    squash([upper, lower], merged)
    home = merged / "home/sandbox"
    assert stat.S_ISCHR((home / "f").lstat().st_mode)
    assert os.listdir(home / "d") == []
    assert os.getxattr(home / "d", "user.overlay.opaque") == b"y"
