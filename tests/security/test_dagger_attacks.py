"""Attacks from a cell on a real Dagger engine: no root, no nesting, nothing of the host, no other room's link, no secret told."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from dagger_kernel import Sandbox
from dagger_kernel.engines.dagger.chain import LINK

from .conftest import Attacker, printed, watching_command_lines

pytestmark = [pytest.mark.dagger, pytest.mark.timeout(300)]
VALUE = "tok-5up3r/s3cr3t+w0rd"


@pytest.fixture(scope="module")
def attacker(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-word")
    patch.setenv("JUPYTER_TOKEN", "hidden-word")
    place = tmp_path_factory.mktemp("dagger") / "data"
    with Sandbox(data_dir=str(place), engine="dagger") as sandbox:
        yield Attacker(sandbox)
    patch.undo()


def status(attacker):
    text = attacker("open('/proc/self/status').read()")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_the_cell_is_an_ordinary_user_without_capabilities(attacker):
    found = status(attacker)
    assert found["Uid"].split() == found["Gid"].split() == ["1000"] * 4
    assert {found[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert found["Seccomp"] == "2"


def test_no_way_to_root(attacker):
    tried = [
        "os.setuid, 0",
        "os.setgid, 0",
        "os.setgroups, [0]",
        "os.setresuid, 0, 0, 0",
        "os.chroot, '/tmp'",
    ]
    assert set(attacker.each(*(f"trying({t})" for t in tried))) <= {"EPERM", "EACCES", "EINVAL"}
    before = "import subprocess\nrun = lambda c: subprocess.run(c, shell=True, input='\\n', capture_output=True, text=True, timeout=20)"
    for command in (
        "su -c id",
        "su root -c id",
        "mount -t tmpfs x /mnt",
        "umount /proc",
        "newgrp root -c id",
    ):
        assert attacker(f"'uid=0' in run({command!r}).stdout", before) == "False"
    assert attacker("run('mount -t tmpfs x /mnt').returncode == 0", before) == "False"


@pytest.mark.parametrize("name", ["mount", "umount2", "unshare", "setns", "pivot_root", "reboot", "kexec_load", "init_module",
                                  "bpf", "open_by_handle_at", "move_mount", "fsopen", "swapon", "settimeofday", "sethostname"])  # fmt: skip
def test_privileged_calls_are_refused(attacker, name):
    arguments = {
        "unshare": "0x00020000",
        "setns": "0, 0x00020000",
        "open_by_handle_at": "-100, b'x', 0",
    }
    given = arguments.get(name, "b'/', b'/', b'x', 0, None")
    outcome = attacker(f"call({name!r}, {given})")
    assert outcome in ("EPERM", "EACCES", "ENOSYS", "EBADF", "EINVAL", "EFAULT"), outcome


def test_the_system_is_not_writable(attacker):
    places = [
        "/usr/bin/x",
        "/etc/x",
        "/opt/x",
        "/opt/dagger-kernel/x",
        "/root/x",
        "/x",
        "/run/x",
        "/var/x",
        "/sys/x",
        "/proc/x",
    ]
    assert "done" not in attacker.each(*(f"making({place!r})" for place in places))
    closed = [
        "/etc/passwd",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/.init",
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
    ]
    assert "done" not in attacker.each(*(f"writing({place!r})" for place in closed))
    assert attacker("[reading('/etc/shadow'), reading('/root')]") != "['done', 'done']"


def test_no_files_of_the_host_are_mounted(attacker):
    """A path of the host's own disk appears for four single, read-only files of the engine; and the link."""
    lines = [line.split() for line in attacker("open('/proc/self/mountinfo').read()").splitlines()]
    kinds = {line[4]: (line[line.index("-") + 1], line[5]) for line in lines}
    virtual = {"overlay", "proc", "tmpfs", "devpts", "mqueue", "sysfs", "cgroup", "cgroup2"}
    from_disk = {place: options for place, (kind, options) in kinds.items() if kind not in virtual}
    if from_disk.pop(LINK, None):  # where the engine's own files are not in memory
        assert attacker(f"stat.S_ISSOCK(os.stat({LINK!r}).st_mode)", "import stat") == "True"
    assert set(from_disk) <= {"/etc/hosts", "/.init", "/etc/resolv.conf", "/etc/hostname"}
    assert all(options.startswith("ro") for options in from_disk.values())
    host = Path(__file__).resolve()
    assert attacker(f"os.path.exists({str(host)!r})") == "False"


SOCKETS = """
import stat
def sockets():
    found = []
    for folder, folders, names in os.walk('/'):
        if folder == '/':
            folders[:] = [f for f in folders if f not in ('proc', 'sys')]
        for name in names:
            try:
                # What a directory says of a mounted file is what lies below it.
                if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode):
                    found.append(os.path.join(folder, name))
            except OSError:
                continue
    return found
"""


def test_no_socket_but_the_link_and_no_session_of_the_engine(attacker):
    assert eval(attacker("sockets()", SOCKETS)) == ["/run/dagger-kernel.sock"]
    names = eval(attacker("sorted(os.environ)"))
    assert not [name for name in names if "DAGGER" in name or "OTEL" in name or "TRACE" in name]
    assert "hidden-word" not in attacker("dict(os.environ)")
    abstract = eval(
        attacker("[line.split()[-1] for line in open('/proc/net/unix') if '@' in line]")
    )
    assert not [name for name in abstract if "dagger" in name or "buildkit" in name]


def test_only_the_rooms_own_processes_are_there(attacker):
    lines = eval(
        attacker("[open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()]")
    )
    assert len(lines) <= 4
    assert all("dagger_kernel_runner" in line for line in lines)


def test_the_supervisor_can_neither_be_traced_nor_read(attacker):
    before = "supervisor = os.getppid()"
    outcomes = eval(
        attacker("[call('ptrace', 16, supervisor, 0, 0), reading(f'/proc/{supervisor}/mem'), writing(f'/proc/{supervisor}/mem'), reading(f'/proc/{supervisor}/environ')]", before)
    )  # fmt: skip
    assert set(outcomes) <= {"EPERM", "EACCES"}


SPEAK = """
import json, socket, struct
def speak(*heads, nonce=None):
    link = socket.socket(socket.AF_UNIX); link.settimeout(3); link.connect('/run/dagger-kernel.sock')
    for head in heads:
        text = json.dumps(head).encode()
        link.sendall(struct.pack('!II', len(text), 0) + text)
    try:
        return len(link.recv(100))
    except (TimeoutError, ConnectionError):
        return 0
"""
OWN = "[a for a in open('/proc/1/cmdline').read().split('\\0') if len(a) == 32][0]"


def test_the_link_serves_nobody_else(attacker):
    """A cell can reach the kernel's socket and knows its own nonce; neither gets it a step or a result."""
    for heads in (
        f"{{'type': 'hello', 'nonce': {OWN}}}",
        "{'type': 'hello', 'nonce': '0' * 32}",
        "{'type': 'hello', 'nonce': ''}",
        f"{{'type': 'hello', 'nonce': {OWN}}}, {{'type': 'done', 'status': 'ok'}}",
        "{'type': 'done', 'status': 'ok'}",
        "{'type': 'hello', 'nonce': 'x' * 100000}",
    ):
        assert attacker(f"speak({heads})", SPEAK) == "0"
    many = (
        SPEAK
        + "\nheld = []\nfor _ in range(300):\n    s = socket.socket(socket.AF_UNIX); s.connect('/run/dagger-kernel.sock'); held.append(s)"
    )
    assert attacker("len(held)", many) == "300"
    assert attacker("'the next cell runs'") == "the next cell runs"


def test_a_secret_is_in_the_environment_of_the_cell_and_nowhere_else(attacker, tmp_path):
    sandbox = attacker.sandbox
    sandbox.secret("API_KEY", VALUE)
    try:
        with watching_command_lines(VALUE) as seen:
            done = sandbox.run(
                "import os, time; key = os.environ['API_KEY']; print(key, len(key)); time.sleep(0.5)"
            )
            assert printed(done) == f"*** {len(VALUE)}\n"
            assert "holds the secret" in repr(done.state["lost"])
            assert (
                printed(sandbox.run("echo $API_KEY ${#API_KEY}", language="bash"))
                == f"*** {len(VALUE)}\n"
            )
    finally:
        sandbox.forget_secret("API_KEY")
    assert seen
    assert not any(seen)
    # What the engine was told, all of it, is the container's identity.
    engine = sandbox._inner._session._rooms._engine
    state = engine._states.get(done.key) if hasattr(engine, "_states") else None
    if state is not None:
        told = base64.b64decode(sandbox._wait(state.container.id()) + "==")
        assert VALUE.encode() not in told
        assert b"os.environ['API_KEY']" not in told
    assert attacker("subprocess.run(['grep', '-rls', os.environ.get('X', 'tok-5up3r' + '/s3cr3t'), '/.dk', '/home', '/tmp'], capture_output=True, text=True).stdout", "import subprocess") == ""  # fmt: skip


def test_a_bomb_ends_with_its_step(attacker):
    from dagger_kernel.steps import Limits

    small = Limits(wall_seconds=20.0, memory_bytes=200 << 20, processes=100)
    for bomb, reason in (
        ("x = bytearray(1 << 30)", "memory"),
        ("while True: pass", "wall"),
        ("import os\nwhile True: os.fork()", "processes"),
    ):
        done = attacker.run(bomb, limits=small)
        assert done.status in ("limit", "error"), (bomb, done)
        assert done.error is not None, reason
    assert attacker("1 + 1") == "2"
