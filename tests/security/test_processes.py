"""What a cell inherits and what it can do to other processes."""

from __future__ import annotations

import os

import pytest

from dagger_kernel import Sandbox

from .conftest import Attacker, printed

ENVIRONMENT = {
    "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PATH", "VIRTUAL_ENV", "MPLBACKEND", "MPLCONFIGDIR",
    "PYTHONHASHSEED", "PYTHONUNBUFFERED", "UV_COMPILE_BYTECODE", "UV_LINK_MODE", "UV_NO_CACHE", "UV_NO_PROGRESS",
    "UV_PYTHON_DOWNLOADS", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_CACHE_DIR", "PIP_ROOT_USER_ACTION", "NO_PROXY",
    "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
    "PIP_CERT", "CURL_CA_BUNDLE", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PWD", "CLICOLOR", "FORCE_COLOR",
    "CLICOLOR_FORCE", "PAGER", "GIT_PAGER", "COLUMNS", "LINES", "PYDEVD_USE_FRAME_EVAL", "JPY_PARENT_PID",
}  # fmt: skip


def test_descriptors_are_the_standard_ones_and_the_talk_with_the_supervisor(attacker):
    before = "links = {int(n): os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{n}')}"
    links = eval(attacker("links", before))
    assert links.pop(0) == "/dev/null"
    assert len(links) <= 4
    assert all(link.startswith(("pipe:", "socket:")) for link in links.values()), links


def test_children_inherit_the_standard_descriptors_only(attacker):
    text = printed(
        attacker.run(
            "import subprocess\nprint(subprocess.run(['ls', '/proc/self/fd'], capture_output=True, text=True).stdout)"
        )
    )
    assert text.split() == ["0", "1", "2", "3"]  # 3 is the directory that ls lists
    text = printed(attacker.run("!ls /proc/self/fd"))
    assert text.split() == ["0", "1", "2", "3"]
    text = printed(attacker.run("ls /proc/self/fd", language="bash"))
    assert text.split() == ["0", "1", "2", "3"]


def test_the_hosts_environment_stays_outside(fresh_data_dir, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-word")
    monkeypatch.setenv("JUPYTER_TOKEN", "hidden-word")
    monkeypatch.setenv("DAGGER_KERNEL_SECRET_THING", "hidden-word")
    monkeypatch.setenv("LD_PRELOAD_X", "hidden-word")
    with Sandbox(data_dir=str(fresh_data_dir)) as sandbox:
        code = "import os, glob\nprint(sorted(os.environ))\nfor f in glob.glob('/proc/[0-9]*/environ'):\n    try: print(b'hidden-word' in open(f, 'rb').read())\n    except OSError: print('closed')"
        names, *found = printed(sandbox.run(code)).splitlines()
    assert set(eval(names)) <= ENVIRONMENT
    assert set(found) <= {"False", "closed"}


def test_the_memory_inherited_from_the_zygote_holds_nothing_of_the_host(
    fresh_data_dir, monkeypatch
):
    """The cell is a fork: what the zygote ever held could be read from the cell's own memory."""
    word = b"hidden-word-" + os.urandom(8).hex().encode()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", word.decode())
    with (
        Sandbox(data_dir=str(fresh_data_dir)) as sandbox,
        Sandbox(data_dir=str(fresh_data_dir)) as other,
    ):
        other.run(f"x = {word!r}")
        code = f"""
masked = {bytes(b ^ 1 for b in word)!r}
hits = 0
with open('/proc/self/mem', 'rb', 0) as memory:
    for line in open('/proc/self/maps').readlines():
        area, rights = line.split()[:2]
        if not rights.startswith('rw') or '[v' in line:
            continue
        start, end = (int(n, 16) for n in area.split('-'))
        memory.seek(start)
        try:
            data = memory.read(end - start)
        except OSError:
            continue
        position = data.find(masked[:4])
        while position >= 0:
            hits += data[position:position + len(masked)] == masked
            position = data.find(masked[:4], position + 1)
print(hits)
"""
        control = int(printed(sandbox.run(code)))
        flipped = "data = memory.read(end - start).translate(bytes(b ^ 1 for b in range(256)))"
        found = int(printed(sandbox.run(code.replace("data = memory.read(end - start)", flipped))))
    assert control > 0  # the search finds what is there: the masked word of its own source
    assert found == 0


def test_only_the_rooms_own_processes_are_there(attacker):
    pids = eval(attacker("sorted(int(p) for p in os.listdir('/proc') if p.isdigit())"))
    assert pids[0] == 1
    assert len(pids) <= 3


def test_the_supervisor_can_neither_be_traced_nor_read(attacker):
    outcomes = attacker.each(
        "call('ptrace', 16, 1, 0, 0)", "call('ptrace', 0x4206, 1, 0, 0)", "call('process_vm_readv', 1, None, 0, None, 0, 0)",
        "reading('/proc/1/mem')", "writing('/proc/1/mem')", "reading('/proc/1/environ')",
        "call('pidfd_getfd', os.pidfd_open(1), 4, 0)", "trying(os.listdir, '/proc/1/map_files')",
    )  # fmt: skip
    assert set(outcomes) - {"EPERM", "EACCES"} <= {"done"}
    assert outcomes[0] == outcomes[1] == "EPERM"
    assert outcomes[3:6] == ["EACCES"] * 3
    assert outcomes[6] == "EPERM"


def test_signals_do_not_end_the_supervisor(attacker):
    code = "import os, signal\nfor n in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGSEGV, signal.SIGUSR1):\n    os.kill(1, n)\nprint('sent')"
    done = attacker.run(code)
    assert (done.status, printed(done)) == ("ok", "sent\n")


def test_killing_everything_ends_the_cell_alone(attacker):
    done = attacker.run(
        "import os, signal\nos.kill(-1, signal.SIGKILL); print('others'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert done.status == "error"
    assert attacker("'next cell'") == "next cell"


def test_no_capability_no_way_to_one(attacker):
    status = dict(
        line.split(":\t", 1)
        for line in printed(attacker.run("print(open('/proc/self/status').read())")).splitlines()
        if ":\t" in line
    )
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {
        "0" * 16
    }
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert status["Uid"].split() == ["1000"] * 4
    tried = [
        "os.setuid, 0",
        "os.setgid, 0",
        "os.setgroups, [0]",
        "os.setresuid, 0, 0, 0",
        "os.nice, -5",
        "os.setpriority, 0, 1, -5",
    ]
    assert set(attacker.each(*(f"trying({t})" for t in tried))) <= {"EPERM", "EACCES", "EINVAL"}


def test_identity_maps_cannot_be_rewritten(attacker):
    texts = {"uid_map": b"0 0 1", "gid_map": b"0 0 1", "setgroups": b"allow"}
    tried = [f"open('/proc/self/{name}', 'wb', 0).write({text})" for name, text in texts.items()]
    assert "done" not in attacker.each(*(f"trying(lambda: {t})" for t in tried))


def test_no_control_group_is_there_to_leave(attacker):
    assert attacker.each(
        "reading('/sys/fs/cgroup/cgroup.procs')",
        "os.path.exists('/sys')",
        "[n for n in os.listdir('/') if 'cgroup' in n]",
    ) == ["ENOENT", False, []]
    groups = attacker("open('/proc/self/cgroup').read().split()")
    assert all(line.endswith((":/", "/..")) or ":/" in line for line in eval(groups))


def test_limits_cannot_be_raised(attacker):
    code = "import resource as r"
    tried = [
        f"trying(lambda: r.setrlimit(r.{n}, (r.getrlimit(r.{n})[1] + 1,) * 2))"
        for n in ("RLIMIT_CPU", "RLIMIT_NOFILE")
    ]
    for expression in tried:
        with pytest.raises(
            AssertionError, match="ValueError"
        ):  # "not allowed to raise maximum limit"
            attacker(expression, code)


def test_ipc_of_the_host_is_another(attacker):
    assert attacker.each(
        "os.listdir('/dev/shm')", "len(open('/proc/sysvipc/shm').readlines())"
    ) == [[], 1]


def test_the_kernel_ends_cells_first_when_memory_is_short(attacker):
    assert int(attacker("open('/proc/self/oom_score_adj').read()")) == 800


def test_the_name_of_the_machine_is_not_told(attacker):
    name = os.uname().nodename
    text = attacker(
        "repr(os.uname().nodename), open('/etc/hosts').read(), open('/etc/passwd').read()"
    )
    assert "sandbox" in text
    assert name == "sandbox" or f"'{name}'" not in text


__all__ = ["Attacker"]
