"""Layers on disk: found by key, squashed without changing what they show, evicted."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagger_kernel.engines.local import squash as squashing
from dagger_kernel.engines.local.container import bwrap_path
from dagger_kernel.engines.local.layer import Layer
from dagger_kernel.engines.local.layers import FANOUT, LONGEST, LayerStore
from dagger_kernel.engines.local.squash import squash
from dagger_kernel.engines.local.trees import remove
from dagger_kernel.engines.local.view import View
from dagger_kernel.steps import child_key, root_key

ROOT = Layer(root_key("b", "r"), "", 0, (), "b")


def grow(store, parent, fill):
    room = store.new_room(parent)
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
    from dagger_kernel.engines.local import layer

    store = LayerStore(tmp_path)
    settled = grow(store, ROOT, lambda home: None)
    store.settle()
    unsettled = grow(store, settled, lambda home: None)
    assert store.get(unsettled.key) is not None
    monkeypatch.setattr(layer, "boot_id", lambda: "the next run")
    assert store.get(settled.key) is not None
    assert store.get(unsettled.key) is None


def test_the_second_of_two_equal_commits_gives_way(tmp_path):
    store = LayerStore(tmp_path)
    rooms = [store.new_room(ROOT) for _ in range(2)]
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


def test_what_could_not_be_squashed_is_squashed_later(tmp_path, monkeypatch):
    from dagger_kernel.engines.local import layers

    def full(stack, target):
        target.mkdir(parents=True)
        raise OSError(errno.ENOSPC, "full")

    store, layer = LayerStore(tmp_path), ROOT
    with monkeypatch.context() as patch:
        patch.setattr(layers, "squash", full)
        for number in range(LONGEST + 3):
            layer = grow(store, layer, lambda home, n=number: (home / f"f{n}").write_text(str(n)))
    assert len(layer.lowers) == LONGEST + 3
    layer = grow(store, layer, lambda home: None)
    assert len(layer.lowers) == 1
    assert store.get(layer.key) == layer
    assert len(os.listdir(store.root / layer.lowers[0] / "fs/home/sandbox")) == LONGEST + 3
    assert [name for name in os.listdir(tmp_path) if name.startswith("room-")] == []


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


# -- shapes that a cell can make and no path can name

LONG = ["x" * 250] * 20


def dig(place, *names):
    """Make directories in each other; return a descriptor of the last one."""
    here = os.open(place, os.O_RDONLY)
    for name in names:
        try:
            os.mkdir(name, dir_fd=here)
        except FileExistsError:
            pass
        here, before = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(before)
    return here


def put(directory, name, text="x"):
    with open(name, "w", opener=lambda path, flags: os.open(path, flags, dir_fd=directory)) as file:
        file.write(text)
    os.close(directory)


def test_directories_deeper_than_a_path_are_squashed(tmp_path):
    store, layer, made = LayerStore(tmp_path), ROOT, []

    def fill(home):
        put(dig(home, f"own{len(made)}", *LONG), "f", str(len(made)))
        put(dig(home, "shared", *LONG), f"f{len(made)}")

    try:
        for number in range(2 * FANOUT + 1):
            layer = grow(store, layer, fill)
            made.append(layer)
            assert len(layer.lowers) <= 1 + number // FANOUT + FANOUT
        assert len(layer.lowers) == 3
        homes = [store.root / name / "fs/home/sandbox" for name in layer.lowers]
        shared = [dig(home, "shared", *LONG) for home in homes]
        names = [name for directory in shared for name in os.listdir(directory)]
        assert sorted(names) == sorted(f"f{number}" for number in range(len(made)))
        for number, one in enumerate(made):
            (home,) = [home for home in homes if (home / f"own{number}").exists()]
            first = store.path(one.key) / "home/sandbox"
            places = [dig(where, f"own{number}", *LONG) for where in (home, first)]
            assert len({os.stat("f", dir_fd=place).st_ino for place in places}) == 1
            for place in places:
                os.close(place)
        for directory in shared:
            os.close(directory)
    finally:
        for name in os.listdir(tmp_path):
            remove(tmp_path / name)


def test_depth_takes_no_descriptors(tmp_path):
    upper, lower, merged = tmp_path / "u", tmp_path / "l", tmp_path / "m"
    for layer, depth in ((upper, 1100), (lower, 700)):
        layer.mkdir()
        put(dig(layer, *["d"] * depth), layer.name)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        squash([upper, lower], merged)
        for layer, depth in ((upper, 1100), (lower, 700)):
            place = dig(merged, *["d"] * depth)
            assert os.access(layer.name, os.F_OK, dir_fd=place)
            os.close(place)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for layer in (upper, lower, merged):
            remove(layer)


def test_rights_and_times_are_those_of_the_top(tmp_path):
    upper, lower, merged = tmp_path / "u", tmp_path / "l", tmp_path / "m"
    for layer, mode, when in ((upper, 0o710, 1000), (lower, 0o777, 2000)):
        (layer / "d" / layer.name).mkdir(parents=True)
        (layer / "d").chmod(mode)
        os.setxattr(layer / "d", "user.word", layer.name.encode())
        os.utime(layer / "d", (when, when))
    squash([upper, lower], merged)
    info = (merged / "d").stat()
    assert (stat.S_IMODE(info.st_mode), info.st_mtime) == (0o710, 1000)
    assert os.getxattr(merged / "d", "user.word") == b"u"
    assert sorted(os.listdir(merged / "d")) == ["l", "u"]


@pytest.mark.parametrize("above", ["file", "link", "whiteout"])
def test_what_is_no_directory_hides_one_and_is_hidden_by_one(tmp_path, above):
    top, middle, bottom, merged = (tmp_path / name for name in "tmbx")
    for layer in (top, bottom):
        (layer / "d" / layer.name).mkdir(parents=True)
    middle.mkdir()
    for layer, name in ((middle, "d"), (middle, "e"), (bottom, "unrelated")):
        {
            "file": lambda path: path.write_text("x"),
            "link": lambda path: path.symlink_to("/etc"),
            "whiteout": lambda path: os.mknod(path, stat.S_IFCHR, os.makedev(0, 0)),
        }[above](layer / name)
    (bottom / "e").mkdir()
    squash([top, middle, bottom], merged)
    assert os.listdir(merged / "d") == ["t"]
    assert os.getxattr(merged / "d", "user.overlay.opaque") == b"y"
    assert (merged / "e").lstat().st_ino == (middle / "e").lstat().st_ino
    assert sorted(os.listdir(merged)) == ["d", "e", "unrelated"]


def test_files_with_all_the_links_that_can_be_are_copied(tmp_path, monkeypatch):
    """65,000 on ext4; an overlay's deletions are links of one file. A copy's holes stay holes."""
    layer, merged = tmp_path / "l", tmp_path / "m"
    layer.mkdir()
    with open(layer / "sparse", "wb") as file:
        file.seek(1 << 30)
        file.write(b"data")
        file.truncate(1 << 40)
    (layer / "sparse").chmod(0o640)
    os.mknod(layer / "gone", stat.S_IFCHR, os.makedev(0, 0))
    os.symlink("/etc/passwd", layer / "link")
    os.mkfifo(layer / "pipe")
    kinds = os.listdir(layer)
    for name in kinds:
        for number in range(9):
            os.link(layer / name, layer / f"{name}{number}", follow_symlinks=False)
    really = squashing._link

    def link(name, source, fresh, target):
        if os.stat(name, dir_fd=source, follow_symlinks=False).st_nlink >= 4:
            raise OSError(errno.EMLINK, "too many")
        really(name, source, fresh, target)

    monkeypatch.setattr(squashing, "_link", link)
    squash([layer], merged)
    assert sorted(os.listdir(merged)) == sorted(os.listdir(layer))
    for name in os.listdir(layer):
        old, new = (layer / name).lstat(), (merged / name).lstat()
        for fact in ("st_mode", "st_rdev", "st_size", "st_blocks"):
            assert getattr(old, fact) == getattr(new, fact), (name, fact)
    assert len({(merged / name).lstat().st_ino for name in os.listdir(layer)}) == 4 * len(kinds)
    assert os.readlink(merged / "link3") == "/etc/passwd"
    with open(merged / "sparse3", "rb") as file:
        file.seek((1 << 30) - 1)
        assert file.read(6) == b"\0data\0"
    assert sorted(os.listdir(tmp_path)) == ["l", "m"]
