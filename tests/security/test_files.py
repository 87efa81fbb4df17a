"""Ways out of the file system: into the host, into other sandboxes, into what is shared."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from dagger_kernel import errors
from dagger_kernel.engines.local.layer import Layer, name_of
from dagger_kernel.engines.local.layers import LayerStore
from dagger_kernel.engines.local.squash import squash
from dagger_kernel.engines.local.trees import remove, usage

from .conftest import Attacker, printed

HOST = [
    "/etc/shadow", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/xdg", "/etc/hostname", "/etc/machine-id",
    "/etc/resolv.conf", "/etc/sudoers", "/etc/ssh", "/var", "/run", "/sys", "/srv", "/mnt", "/media", "/boot",
    "/root" + "/.ssh", "/home/tester", "/proc/kcore", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/fuse",
    "/dev/kvm", "/dev/net", "/dev/mqueue",
]  # fmt: skip


def test_the_hosts_files_are_not_there(attacker, subtests):
    for path, outcome in zip(HOST, attacker.each(*(f"reading({p!r})" for p in HOST)), strict=True):
        with subtests.test(path):
            assert outcome in ("ENOENT", "EACCES")


def test_what_is_at_the_top_is_known(attacker):
    assert set(eval(attacker("sorted(os.listdir('/'))"))) <= {
        "nonexistent", "home", "L", "B", "opt", "tmp", ".dk", "room", "dev", "proc", "root", "etc", "lib", "lib32",
        "lib64", "libx32", "sbin", "bin", "usr", "nix", "snap", "skills",
    }  # fmt: skip


def test_the_home_of_root_holds_at_most_the_way_to_the_interpreter(attacker):
    prefix = attacker("sys.base_prefix")
    found = eval(
        attacker(
            "[os.path.join(d, f) for d, _, fs in os.walk('/root') for f in fs if not d.startswith(sys.base_prefix)]"
        )
    )
    assert found == [], prefix


@pytest.mark.parametrize("path", ["/L", "/B", "/room"])
def test_what_rooms_are_built_from_is_detached(attacker, path):
    assert attacker(f"os.listdir({path!r})") == "[]"


def test_the_supervisors_links_lead_nowhere(attacker, subtests):
    links = ["root", "cwd", "exe", "fd/0", "fd/4", "ns/mnt", "ns/net", "ns/user"]
    files = [
        "mem",
        "maps",
        "environ",
        "auxv",
        "pagemap",
        "root/L",
        "cwd/layer.json",
        "map_files",
        "syscall",
        "stack",
    ]
    outcomes = attacker.each(
        *(f"trying(os.readlink, '/proc/1/{n}')" for n in links),
        *(f"reading('/proc/1/{n}')" for n in files),
    )
    for name, outcome in zip(links + files, outcomes, strict=True):
        with subtests.test(name):
            assert outcome in ("EACCES", "EPERM", "ENOENT", "EISDIR")
            assert outcome != "EISDIR" or name == "map_files"


def test_going_up_ends_at_the_rooms_root(attacker):
    expression = "os.path.samefile('/proc/self/root' + '/..' * 4, '/'), os.path.samefile('/' + '../' * 50, '/')"
    assert attacker(expression) == "(True, True)"


READ_ONLY = [
    "/planted", "/usr/planted", "/usr/bin/planted", "/etc/planted", "/opt/planted", "/opt/dagger-kernel/planted",
    "/opt/dagger-kernel/dagger_kernel_runner/planted.py", "/dev/planted", "/L/planted", "/B/planted", "/room/planted",
    "/root/planted", "/lib/planted", "/bin/planted", "/home/planted",
]  # fmt: skip


SHARED = [
    "/etc/passwd",
    "/etc/dagger-kernel-ca.pem",
    "/usr/bin/env",
    "/opt/dagger-kernel/dagger_kernel_runner/entry.py",
]
SWITCHES = [
     "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
     "/proc/sys/fs/binfmt_misc/register", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces",
     "/proc/sys/kernel/pid_max", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity",
]  # fmt: skip


def test_nothing_outside_the_state_can_be_made_or_changed(attacker, subtests):
    attempts = [f"making({p!r})" for p in READ_ONLY] + [
        f"writing({p!r})" for p in SHARED + SWITCHES
    ]
    for attempt, outcome in zip(attempts, attacker.each(*attempts), strict=True):
        with subtests.test(attempt):
            assert outcome in ("EROFS", "EACCES", "ENOENT", "ENOTDIR")


NOTHING = [
     "kallsyms", "keys", "key-users", "kmsg", "timer_list", "iomem", "ioports", "cmdline", "modules", "locks",
     "slabinfo", "vmallocinfo", "config.gz", "interrupts", "partitions", "diskstats", "mtrr", "kpagecount",
]  # fmt: skip


def test_proc_says_nothing_of_the_machine(attacker, subtests):
    attempts = [
        f"os.path.exists('/proc/{n}') and open('/proc/{n}', 'rb').read(100)" for n in NOTHING
    ]
    for name, outcome in zip(NOTHING, attacker.each(*attempts), strict=True):
        with subtests.test(name):
            assert not outcome


def test_the_interpreter_is_shared_and_read_only(attacker):
    outcomes = attacker.each(
        "writing(os.path.realpath(sys.executable))", "making(os.path.join(sys.base_prefix, 'x'))"
    )
    assert set(outcomes) <= {"EROFS", "EACCES", "ETXTBSY"}


def test_hard_links_do_not_cross(attacker):
    expression = "[trying(os.link, f, '/home/sandbox/h') for f in ('/etc/passwd', '/usr/bin/env', '/proc/1/mem', '/tmp')]"
    assert "done" not in attacker(expression)


def test_marks_of_the_overlay_cannot_be_forged(attacker):
    """In the next room, on the committed layer: nothing is hidden, nothing led elsewhere."""
    marks = {
        "user.overlay.opaque": b"y",
        "user.overlay.redirect": b"/../../etc",
        "user.overlay.metacopy": b"",
        "trusted.overlay.opaque": b"y",
    }
    before = f"for n in range({len(marks)}): os.makedirs(f'marked{{n}}/inner'); open(f'marked{{n}}/inner/f', 'w').write('kept')"
    attacker("'made'", before)
    attacker.each(
        *(
            f"trying(os.setxattr, 'marked{n}', {name!r}, {value!r})"
            for n, (name, value) in enumerate(marks.items())
        )
    )
    found = attacker.each(
        *(f"open('marked{n}/inner/f').read(), os.listdir('marked{n}')" for n in range(len(marks)))
    )
    assert found == [("kept", ["inner"])] * len(marks)


def test_devices_cannot_be_made(attacker):
    kinds = ["1, 1", "1, 3", "254, 0", "0, 0"]
    outcomes = attacker.each(
        *(f"trying(os.mknod, 'device', 0o20666, os.makedev({kind}))" for kind in kinds)
    )
    assert set(outcomes) <= {"EPERM", "EACCES"}


def test_setuid_programs_give_nothing(attacker):
    before = "import subprocess\ndef code(*command): return subprocess.run(command, input=b'', capture_output=True).returncode"
    tried = [
        ["su", "-c", "true"],
        ["mount", "-t", "tmpfs", "x", "/tmp"],
        ["unshare", "-Ur", "true"],
        ["/usr/sbin/chroot", "/tmp"],
    ]
    found = attacker("[code(*command) for command in tried]", f"{before}\ntried = {tried}")
    assert 0 not in eval(found)


def test_a_setuid_bit_of_ones_own_does_nothing(attacker):
    before = (
        "import shutil, subprocess; shutil.copy('/usr/bin/id', 'myid'); os.chmod('myid', 0o4755)"
    )
    assert (
        attacker("subprocess.run(['./myid', '-u'], capture_output=True, text=True).stdout", before)
        == "1000"
    )


# -- the host's side: listing, reading, exporting, removing what a sandbox made


PLANTED = [
    "/etc/passwd",
    "/etc",
    "/",
    "../../../../../../../../etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
]


def test_links_lead_the_host_nowhere(attacker, subtests):
    attacker.run(
        f"import os\nfor n, target in enumerate({PLANTED}): os.symlink(target, f'trap{{n}}')"
    )
    nothing = (errors.SandboxPathError, FileNotFoundError)
    for number, target in enumerate(PLANTED):
        with subtests.test(target):
            for path in (f"trap{number}", f"trap{number}/passwd"):
                with pytest.raises(nothing):
                    attacker.sandbox.download(path)
            with pytest.raises(nothing):
                attacker.sandbox.files(f"trap{number}")


def test_links_are_not_exported(attacker):
    done = attacker.run(
        "import os\nos.symlink('/etc/passwd', 'out.csv'); os.symlink('/etc', 'folder')\nopen('in.csv', 'w').write('a')"
    )
    with_data = {file.path: file.data for file in done.files if file.data is not None}
    assert with_data == {"in.csv": b"a"}


PATHS = [
    "../layer.json",
    "/etc/passwd",
    "attachments/../../../layer.json",
    "a\0b",
    "/home/sandbox/../../etc/passwd",
    "x" * 300,
]


def test_paths_of_a_download_stay_inside(attacker, subtests):
    for path in PATHS:
        with subtests.test(path[:40]), pytest.raises((errors.SandboxPathError, FileNotFoundError)):
            attacker.sandbox.download(path)


def test_pipes_and_sockets_do_not_hold_up_the_host(attacker):
    attacker.run(
        "import os, socket\nos.mkfifo('pipe'); s = socket.socket(socket.AF_UNIX); s.bind('sock'); del s"
    )
    for name in ("pipe", "sock"):
        with pytest.raises(errors.SandboxPathError):
            attacker.sandbox.download(name)


def test_a_link_race_between_look_and_open_finds_no_host_file(attacker):
    """A file that becomes a link while the supervisor reads it for export."""
    code = """
import os, subprocess, sys
open('victim', 'w').write('mine')
# Left running on purpose: swaps the file for a link while the step ends.
if os.fork() == 0:
    os.setsid()
    while True:
        os.symlink('/etc/passwd', 'next'); os.rename('next', 'victim')
        open('next', 'w').write('mine'); os.rename('next', 'victim')
"""
    for _ in range(3):
        done = attacker.run(code)
        for file in done.files:
            assert file.data is None or b"root:" not in file.data


def test_closed_directories_and_endless_ones_are_removed(sandboxes):
    sandbox = sandboxes()
    layers = sandboxes.data_dir / "layers"
    try:
        sandbox.run(
            "import os\nos.makedirs('closed/inner'); open('closed/inner/f', 'w'); os.chmod('closed/inner', 0); os.chmod('closed', 0)"
        )
        sandbox.run("import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')")
        assert printed(sandbox.run("import os; print(len(os.listdir('.')) > 0)")) == "True\n"
        depths = [
            info.path.count("/")
            for info in sandbox.files(recursive=True)
            if info.path.startswith("d/")
        ]
        assert 100 < max(depths) < 200
        sandbox.close()
        assert LayerStore(layers).evict(None) >= 3
        assert os.listdir(layers) == [".gate"]
    finally:
        remove(layers)  # else pytest's own cleaning ends in a RecursionError


def test_other_sandboxes_are_out_of_reach(sandboxes):
    mine, yours = sandboxes(), sandboxes()
    yours.run(
        "secret = 'hidden word'; open('secret.txt', 'w').write('hidden word'); open('/tmp/secret.txt', 'w').write('x')"
    )
    key = yours.run("pass").key
    code = f"""
import os, glob
print(os.path.exists('secret.txt'), os.path.exists('/tmp/secret.txt'), glob.glob('/L/*'), globals().get('secret'))
for place in ({str(sandboxes.data_dir)!r}, '/L/{name_of(key)}', '/room', '/proc/1/root/L', '/proc/self/root/L/{name_of(key)}'):
    try:
        print(os.listdir(place))
    except OSError:
        print('none')
"""
    text = printed(mine.run(code))
    assert "False False [] None" in text
    assert set(text.splitlines()[1:]) <= {"none", "[]"}


# -- other users of the machine


def test_directories_are_their_owners_alone(sandboxes, place):
    sandboxes().run("open('f', 'w').write('x')")
    for top in (sandboxes.data_dir, sandboxes.data_dir / "layers"):
        assert top.stat().st_mode & 0o077 == 0, top


def test_a_data_directory_made_by_us_is_private(tmp_path):
    from dagger_kernel.log import open_log
    from dagger_kernel.settings import Settings

    tmp_path.chmod(0o755)
    open_log(Settings.load(data_dir=str(tmp_path / "new" / "data"))).close()
    assert (tmp_path / "new" / "data").stat().st_mode & 0o077 == 0
    for path in (tmp_path / "new" / "data").rglob("*"):
        if path.is_dir():
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_reads_nothing(sandboxes):
    sandboxes().run("open('f', 'w').write('x')")
    for parent in sandboxes.data_dir.parents:
        if str(parent).startswith("/tmp/pytest"):
            parent.chmod(0o755)
    done = subprocess.run(
        ["find", str(sandboxes.data_dir), "-mindepth", "1"],
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
    )
    assert done.stdout == b""
    assert b"Permission denied" in done.stderr


def test_a_deep_tree_has_no_hiding_place_for_bytes(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "f").write_bytes(b"x" * 100_000)
    assert 100_000 <= usage(tmp_path / "t", 1 << 30) < 200_000
    assert usage(tmp_path / "t", 50_000) > 50_000
    here = os.open(tmp_path / "t", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    assert usage(tmp_path / "t", 1 << 30) == (1 << 30) + 1
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (tmp_path / "t" / "link").symlink_to(outside)
    remove(tmp_path / "t")
    assert not (tmp_path / "t").exists()
    assert (outside / "kept").exists()


@pytest.fixture
def ordinary():
    """A directory of an ordinary user's, who runs the test: for root no directory is closed."""
    place, root = Path(tempfile.mkdtemp()), os.geteuid() == 0
    if root:
        os.chown(place, 65534, 65534)
        os.setegid(65534)
        os.seteuid(65534)
    try:
        yield place
    finally:
        if root:
            os.seteuid(0)
            os.setegid(0)
        remove(place)


CLOSED = [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600]


def closed(place, mode, name="big"):
    (place / "c" / "in").mkdir(parents=True)
    (place / "c" / "in" / name).write_bytes(b"x" * 100_000)
    (place / "c" / "in").chmod(mode)
    (place / "c").chmod(mode)


@pytest.mark.parametrize("mode", CLOSED)
def test_a_closed_directory_has_no_hiding_place_for_bytes(ordinary, mode):
    closed(ordinary, mode)
    assert usage(ordinary, 50_000) > 50_000
    assert 100_000 <= usage(ordinary, 1 << 30) < 200_000
    assert stat.S_IMODE((ordinary / "c").stat().st_mode) == mode


def test_a_directory_that_is_closed_while_it_is_counted_is_over_the_limit(ordinary, monkeypatch):
    from dagger_kernel.engines.local import trees

    closed(ordinary, 0o700)
    really = trees.open_unlocked

    def opened(name, directory):
        found = really(name, directory)
        os.fchmod(found[0], 0)
        return found

    monkeypatch.setattr(trees, "open_unlocked", opened)
    assert usage(ordinary, 1 << 30) == (1 << 30) + 1
    assert 0 < usage(ordinary) < 100_000


@pytest.mark.parametrize("mode", CLOSED)
def test_closed_directories_are_squashed(ordinary, mode):
    """Else layers pile up until no room can be opened on them."""
    layers, merged = [ordinary / "a", ordinary / "b"], ordinary / "m"
    for layer in layers:
        closed(layer, mode, layer.name)
    squash(layers, merged)
    for layer in (*layers, merged):
        assert stat.S_IMODE((layer / "c").stat().st_mode) == mode
        (layer / "c").chmod(0o700)
        assert stat.S_IMODE((layer / "c" / "in").stat().st_mode) == mode
        (layer / "c" / "in").chmod(0o700)
    assert sorted(os.listdir(merged / "c" / "in")) == ["a", "b"]
    for layer in layers:
        assert (merged / "c" / "in" / layer.name).samefile(layer / "c" / "in" / layer.name)


def test_collecting_follows_no_link(tmp_path):
    """gc beside a running cell: a link in a directory's place must not lead chmod or unlink to the host's files."""
    from dagger_kernel.engines.local.collector import LayerCollector

    outside, layers = tmp_path / "outside", tmp_path / "layers"
    outside.mkdir(mode=0o755)
    (outside / "kept").write_text("x")
    (layers / "a" / "fs").mkdir(parents=True)
    (layers / "a" / "fs" / "etc").symlink_to(outside)
    (layers / "b").symlink_to(outside)
    assert LayerCollector(LayerStore(layers)).collect().count == 2
    assert os.listdir(layers) == [".gate"]
    assert (outside / "kept").read_text() == "x"
    assert outside.stat().st_mode & 0o777 == 0o755


def test_rooms_of_killed_processes_are_swept(tmp_path):
    """Those of a version without leases, by their age; `test_collector` has the others."""
    store = LayerStore(tmp_path)
    root = Layer("key", "", 0, (), "base")
    old, new = store.new_room(root), store.new_room(root)
    store.leases.end(old)
    os.utime(tmp_path / old, (0, 0))
    assert LayerStore(tmp_path).sweep() == 1
    assert [name for name in os.listdir(tmp_path) if name.startswith("room-")] == [new]


__all__ = ["Attacker"]
