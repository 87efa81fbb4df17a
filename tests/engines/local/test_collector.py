"""Collecting layers: never what is in use, the least used first, altered ones always; with any number of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dagger_kernel.engines.local import layers
from dagger_kernel.engines.local.collector import LayerCollector
from dagger_kernel.engines.local.layer import RECORD, SETTLED, Layer, name_of
from dagger_kernel.engines.local.layers import FANOUT, LayerStore
from dagger_kernel.engines.local.seals import Seal
from dagger_kernel.engines.local.squash import squash
from dagger_kernel.engines.local.trees import remove
from dagger_kernel.errors import RoomLostError
from dagger_kernel.steps import child_key, root_key

ROOT = Layer(root_key("b", "r"), "", 0, (), "b")
LONG_AGO = 1_000_000_000


def grow(store, parent=ROOT, data=b"x", name=""):
    room = store.new_room(parent)
    (store.root / room / "fs/home/sandbox" / f"f{parent.depth}").write_bytes(data)
    return store.commit(room, child_key(parent.key, name or str(parent.depth)), parent)


def age(store, *layers):
    """Let the last use of layers be long ago, the first given the longest."""
    for number, layer in enumerate(layers):
        os.utime(store.root / name_of(layer.key) / RECORD, (LONG_AGO + number,) * 2)


@pytest.fixture
def store(tmp_path):
    return LayerStore(tmp_path / "layers")


def test_what_nobody_uses_goes(store):
    one = grow(store)
    two = grow(store, one)
    age(store, one, two)
    freed = LayerCollector(store).collect()
    assert (freed.count, store.names()) == (2, [])
    assert freed.size > 0


def test_what_was_used_a_moment_ago_stays(store):
    layer = grow(store)
    assert LayerCollector(store).collect().count == 0
    assert store.get(layer.key)


def test_the_ground_of_a_room_stays_until_the_room_ends(store):
    one = grow(store)
    two = grow(store, one)
    other = grow(store, name="other")
    room = store.new_room(two)
    age(store, one, two, other)
    beside = LayerStore(store.root)  # as another process has it
    assert LayerCollector(beside).collect().count == 1
    assert store.get(two.key)
    assert store.get(other.key) is None
    assert beside.evict(None) == 0
    assert beside.evict([one.key]) == 0
    assert beside.sweep(0) == 0
    store.drop(room)
    assert LayerCollector(beside).collect().count == 2


def test_the_least_recently_used_go_first(store):
    chains = []
    for number in range(4):
        one = grow(store, data=os.urandom(100_000), name=f"a{number}")
        chains.append((one, grow(store, one, data=os.urandom(100_000))))
    store.settle()
    age(store, *(layer for chain in chains for layer in chain))
    room = store.new_room(chains[0][1])  # the oldest is used again
    store.drop(room)
    collector = LayerCollector(store)
    assert collector.size() > 800_000
    collector.collect(500_000)
    assert [bool(store.get(top.key)) for _, top in chains] == [True, False, False, True]
    assert collector.size() <= 500_000


def test_a_layer_keeps_those_below_it(store):
    """Least recently used by itself, but in use by the one above."""
    one = grow(store)
    two = grow(store, one)
    age(store, one)
    LayerCollector(store).collect()
    assert store.get(two.key)


def test_no_room_opens_on_what_was_collected(store):
    one = grow(store)
    age(store, one)
    LayerCollector(store).collect()
    with pytest.raises(RoomLostError):
        store.new_room(one)
    assert [name for name in os.listdir(store.root) if name != ".gate"] == []


def test_rooms_of_a_killed_process_go_at_once(store):
    grow(store)
    code = f"""
        import os, signal
        from pathlib import Path
        from dagger_kernel.engines.local.layers import LayerStore
        from dagger_kernel.engines.local.layer import Layer
        root = Layer("key", "", 0, (), "base")
        print(LayerStore(Path({str(store.root)!r})).new_room(root), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert (store.root / done.stdout.strip()).is_dir()
    assert store.sweep() == 1
    assert not (store.root / done.stdout.strip()).exists()
    assert store.leases.known() == set()


@pytest.mark.parametrize("jump", [10 * 365 * 86400.0, -10 * 365 * 86400.0])
def test_a_jump_of_the_clock_ends_no_room(store, monkeypatch, jump):
    room = store.new_room(grow(store))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert LayerStore(store.root).sweep() == 0
    assert (store.root / room / "fs/home/sandbox").is_dir()


def test_several_collectors_and_growers_at_once(store):
    """Whoever stands on layers keeps them; whoever does not is told so, and by no other error."""

    def grower(number):
        mine, lost = LayerStore(store.root), 0
        layer = ROOT
        for _ in range(40):
            try:
                room = mine.new_room(layer)
                assert None not in mine.ground(layer)
                time.sleep(0.001)
                assert None not in mine.ground(layer)
                layer = mine.commit(room, child_key(layer.key, f"{number}"), layer)
                age(mine, layer)
            except (RoomLostError, FileNotFoundError):
                lost, layer = lost + 1, ROOT  # a kernel replays
        return lost

    def collecting(_):
        for _ in range(60):
            LayerCollector(LayerStore(store.root)).collect()

    store.root.mkdir()
    with ThreadPoolExecutor(5) as threads:
        growing = [threads.submit(grower, number) for number in range(3)]
        for one in [threads.submit(collecting, number) for number in range(2)]:
            one.result()
        [one.result() for one in growing]
    assert store.leases.known() == set()
    assert [name for name in os.listdir(store.root) if name.startswith("room-")] == []


# -- altered on the disk


ALTERATIONS = {
    "content": lambda home: (home / "f0").write_bytes(b"y"),
    "content of the same size and time": lambda home: (
        (info := (home / "f0").stat()),
        (home / "f0").write_bytes(b"z"),
        os.utime(home / "f0", ns=(info.st_atime_ns, info.st_mtime_ns)),
    ),
    "a file more": lambda home: (home / "planted.pth").write_text("import evil"),
    "a file less": lambda home: (home / "f0").unlink(),
    "rights": lambda home: (home / "f0").chmod(0o777),
    "a link in its place": lambda home: ((home / "f0").unlink(), (home / "f0").symlink_to("/etc/passwd")),
    "state": lambda home: (home.parent.parent / ".dk/HEAD").write_text("other"),
    "a directory in its place": lambda home: ((home / "f0").unlink(), (home / "f0").mkdir()),
}  # fmt: skip


@pytest.mark.parametrize("how", ALTERATIONS)
def test_an_altered_layer_is_noticed_and_removed_with_those_on_it(store, how):
    one = grow(store)
    two = grow(store, one)
    other = grow(store, name="other")
    store.settle()
    assert LayerCollector(store).damaged() == []
    ALTERATIONS[how](store.path(one.key) / "home/sandbox")
    found = LayerCollector(store).damaged()
    assert any("altered" in line and name_of(one.key) in line for line in found)
    assert store.get(one.key) is None
    assert store.get(two.key) is None
    assert store.get(other.key)
    LayerCollector(store).damaged()
    assert LayerCollector(store).damaged() == []


def test_a_layer_made_again_is_not_the_ground_of_those_on_the_one_before(store):
    """What lies above refers to bytes below by name; another making may have other names."""
    one = grow(store, data=b"first")
    two = grow(store, one)
    three = grow(store, two)
    store.evict([one.key])
    again = grow(store, data=b"second")
    assert again.key == one.key
    assert store.get(two.key) is None
    assert store.get(three.key) is None
    new = grow(store, again)
    assert store.get(new.key) == new
    assert new.key == two.key
    assert store.get(three.key) is None


def test_a_room_whose_ground_was_made_again_leaves_no_layer(store):
    one = grow(store, data=b"first")
    room = store.new_room(one)
    remove(store.root / name_of(one.key))  # by hand: a collector leaves what is in use
    assert not store.stands(room, one)
    with pytest.raises(RoomLostError):
        store.commit(room, child_key(one.key, "two"), one)
    grow(store, data=b"second")
    assert not store.stands(room, one)
    with pytest.raises(RoomLostError):
        store.commit(room, child_key(one.key, "two"), one)
    store.drop(room)
    assert store.leases.known() == set()


@pytest.mark.parametrize("what", ["all of a layer", "its content", "the state in it"])
def test_layers_that_vanish_while_they_are_merged_are_not_merged(store, monkeypatch, what):
    """Merged without what is missing, the state would look whole."""
    layer = ROOT
    for _ in range(FANOUT - 1):
        layer = grow(store, layer)
    place = store.root / layer.lowers[3]
    parts = {
        "all of a layer": place,
        "its content": place / "fs",
        "the state in it": place / "fs/.dk",
    }

    def squash_beside_rm(stack, target):
        squash(stack, target)
        remove(parts[what])

    monkeypatch.setattr(layers, "squash", squash_beside_rm)
    last = grow(store, layer)
    assert len(last.lowers) == FANOUT
    assert store.get(last.key) is None
    assert [name for name in os.listdir(store.root) if name.startswith(("s1-", "room-"))] == []


def test_one_in_use_stays_and_is_told(store):
    layer = grow(store)
    store.settle()
    room = store.new_room(layer)
    (store.path(layer.key) / "home/sandbox/f0").write_bytes(b"y")
    (line,) = LayerCollector(store).damaged()
    assert "uses it" in line
    assert store.get(layer.key)
    store.drop(room)
    (line,) = LayerCollector(store).damaged()
    assert "removed" in line


def test_squashed_layers_are_sealed_too(store):
    layer = ROOT
    for _ in range(FANOUT):
        layer = grow(store, layer)
    store.settle()
    (squashed,) = [name for name in layer.lowers if name.startswith("s1-")]
    assert Seal.read(store.root / squashed / SETTLED)
    assert LayerCollector(store).damaged() == []
    (store.root / squashed / "fs/home/sandbox/more").write_text("x")
    assert any(squashed in line for line in LayerCollector(store).damaged())
    assert store.get(layer.key) is None


def test_a_layer_without_a_seal_is_believed(store):
    """Its kernel runs, or was killed; or it took too long to seal."""
    layer = grow(store)
    assert LayerCollector(store).damaged() == []
    (store.path(layer.key).parent / SETTLED).write_text("half a se")
    assert LayerCollector(store).damaged() == []
    assert Seal.of(store.path(layer.key), deadline=0) is None


def test_a_tree_of_any_shape_has_a_seal_or_none(store, tmp_path):
    deep = tmp_path / "deep"
    deep.mkdir()
    descriptor = os.open(deep, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    assert Seal.of(deep) is None
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / os.fsdecode(b"\xff\n")).write_text("x")
    (odd / "pipe").mkdir()
    os.mkfifo(odd / "pipe/p")
    (odd / "loop").symlink_to("loop")
    assert Seal.of(odd) == Seal.of(odd)
    subprocess.run(["rm", "-rf", deep], check=True)


def test_a_sparse_file_does_not_hold_up_the_end(store):
    layer = grow(store)
    with open(store.path(layer.key) / "home/sandbox/sparse", "wb") as file:
        file.truncate(1 << 43)
    began = time.monotonic()
    store.settle()
    assert time.monotonic() - began < 30
    assert (store.path(layer.key).parent / SETTLED).read_bytes() == b""


def test_nothing_there(tmp_path):
    collector = LayerCollector(LayerStore(tmp_path / "no"))
    assert (collector.size(), collector.collect().count, collector.damaged()) == (0, 0, [])
