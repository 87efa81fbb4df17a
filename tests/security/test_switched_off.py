"""Attacks that succeed once their defence is off: so it is the defence that stops them.

In a module of its own: what is switched off is off for every engine of this process meanwhile.
"""

from __future__ import annotations

import os
import shutil

import pytest

from dagger_kernel.engines.local.layers import LayerStore
from dagger_kernel.sandbox.masking import Mask
from dagger_kernel.sandbox.secrets import Secrets

ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root's rooms have root's file permissions"
)
NAMESPACES = (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000)


def test_without_the_filter_calls_reach_the_kernel(weakened):
    bare = weakened(filtered=False)
    outcomes = eval(
        bare(
            "[call('io_uring_setup', 8, None), call('name_to_handle_at', -100, b'/', None, None, 0), "
            "call('add_key', b'user', b'x', b'y', 1, -3)]"
        )
    )
    assert "ENOSYS" not in outcomes[:1]
    assert "EPERM" not in outcomes[1:]


def test_namespaces_stay_closed_without_the_filter(weakened):
    """The second line: the count of namespaces is zero in the room."""
    bare = weakened(filtered=False)
    flags = ", ".join(f"call('unshare', {flag})" for flag in NAMESPACES)
    assert set(eval(bare(f"[{flags}]"))) <= {"EPERM", "ENOSPC"}


@ROOT
def test_without_filter_and_count_a_namespace_opens(weakened):
    counted = "_write = os.write\nos.write = lambda f, data: len(data) if data == b'0' else _write(f, data)"
    bare = weakened(filtered=False, zygote__enter=counted)
    assert bare(f"call('unshare', {NAMESPACES[0]})") == "done"


@ROOT
def test_with_proc_as_it_is_the_machines_core_pattern_opens_for_writing(weakened):
    bare = weakened(zygote__enter="def _narrow_proc(): pass")
    assert (
        bare("[writing('/proc/sys/kernel/core_pattern'), reading('/proc/keys')]")
        == "['done', 'done']"
    )
    assert bare("len(open('/proc/kallsyms').read()) > 1000") == "True"


def test_a_dumpable_supervisor_is_traced_and_read(weakened):
    bare = weakened(entry="def prepare_process(**_): pass")
    # Only what has stopped can be let go again; else the init stays stopped, and the cell with it.
    stopped = "trying(os.waitpid, 1, 0x40000000)"
    assert bare(
        f"(call('ptrace', 16, 1, 0, 0), {stopped}, call('ptrace', 17, 1, 0, 0), len(os.listdir('/proc/1/fd')) > 3)"
    ) == ("('done', 'done', 'done', True)")
    assert bare("reading('/proc/1/environ')") == "done"


def test_without_closing_the_supervisors_descriptors_reach_the_cell(weakened):
    bare = weakened(children="def close_others(*kept): pass")
    before = "links = [trying(os.readlink, f'/proc/self/fd/{n}') and os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{n}')]"
    assert "eventpoll" in bare("links", before)


def test_without_the_detached_layers_every_sandbox_is_there(weakened):
    bare = weakened(
        zygote__enter="_umount = sc.umount\nsc.umount = lambda place: None if place == LAYERS else _umount(place)"
    )
    assert "room-" in bare("os.listdir('/L')")


def test_with_a_writable_root_rooms_share_files(weakened):
    changed = "_mount = sc.mount\nsc.mount = lambda s, place, *a: None if s is None and place == '/' and a[1] & sc.MS_RDONLY else _mount(s, place, *a)"
    bare = weakened(zygote__enter=changed)
    assert bare("making('/planted')") == "done"
    assert bare("os.path.exists('/planted')") == "True"  # in another room: also another sandbox's


@pytest.mark.skipif(
    tuple(int(n) for n in os.uname().release.split(".")[:2]) < (6, 14),
    reason="Linux 6.14 counts by namespace",
)
def test_without_a_bound_on_process_numbers_there_is_the_machines(weakened):
    bare = weakened(zygote__enter="def _limit_processes(*_): pass")
    assert int(bare("open('/proc/sys/kernel/pid_max').read()")) > 4096


SECRET = "tok-5up3r/s3cr3t+w0rd"


def test_without_the_mask_a_secret_is_told_and_logged(sandboxes, monkeypatch):
    monkeypatch.setattr(Secrets, "mask", property(lambda _self: Mask([])))
    sandbox = sandboxes()
    sandbox.secret("API_KEY", SECRET)
    done = sandbox.run("import os; print(os.environ['API_KEY'])")
    assert "".join(done.logs.stdout) == SECRET + "\n"
    sandbox.close()
    assert any(
        SECRET.encode() in path.read_bytes() for path in sandboxes.data_dir.glob("log.sqlite*")
    )


def test_without_withholding_a_secret_is_in_the_layer(weakened, fresh_data_dir):
    bare = weakened(state__withheld="Withheld.found_in = lambda *_: ''")
    bare.sandbox.secret("API_KEY", SECRET)
    bare.run("import os; key = os.environ['API_KEY']")
    bare.run("pass")
    layers = [path for path in (fresh_data_dir / "layers").rglob("*") if path.is_file()]
    assert any(SECRET.encode() in path.read_bytes() for path in layers)


def test_without_looking_at_its_ground_a_room_shows_an_older_state(sandboxes, monkeypatch):
    monkeypatch.setattr(LayerStore, "stands", lambda *_: True)
    sandbox = sandboxes()
    for number in (1, 2):
        sandbox.run(f"x = {number}")
    rooms = sandbox._inner._session._rooms
    sandbox._wait(rooms.waiting())
    shutil.rmtree(sandboxes.data_dir / "layers" / sandbox._inner._session._tip.chain[-1].key[:20])
    assert "".join(sandbox.run("print(x)").logs.stdout) != "2\n"
