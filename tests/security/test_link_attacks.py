"""Forged talk: a cell that speaks to the supervisor itself, and a supervisor that is the attacker's."""

from __future__ import annotations

import ast
import json
import pickle
from pathlib import Path

import pytest

import dagger_kernel
from dagger_kernel import Sandbox, errors
from dagger_kernel.engines.link import outcome_from
from dagger_kernel.errors import LinkError

from .conftest import printed, shortened

CHANNEL = """
import os, json, socket, struct
def channel():
    for n in sorted(int(n) for n in os.listdir('/proc/self/fd')):
        try:
            if os.readlink(f'/proc/self/fd/{n}').startswith('socket:'):
                s = socket.socket(fileno=os.dup(n))
                if s.type == socket.SOCK_SEQPACKET: return s
        except OSError: pass
def frame(head, body=b''):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack('!II', len(text), len(body)) + text + body
s = channel()
"""

FORGED = {
    "garbage": "s.send(b'\\xff' * 100)",
    "too short": "s.send(b'x')",
    "lengths beyond the packet": "s.send(struct.pack('!II', 1 << 20, 0) + b'{}')",
    "lengths beyond the cap": "s.send(struct.pack('!II', 0xffffffff, 0xffffffff))",
    "no object": "s.send(frame(b'[1]'))",
    "deep": "s.send(frame(b'[' * 40000))",
    "no type": "s.send(frame({'a': 1}))",
    "an unknown type": "s.send(frame({'type': 'shutdown'}))",
    "an acknowledgement of its own": "s.send(frame({'type': 'display', 'data': {}, 'ack': 'x'}))",
    "a huge acknowledgement": "s.send(frame({'type': 'clear', 'ack': 1 << 80}))",
    "data that is none": "s.send(frame({'type': 'display', 'data': 5, 'metadata': [], 'transient': 'x'}))",
    "an error without a traceback": "s.send(frame({'type': 'error', 'ename': 1, 'evalue': [], 'traceback': 'x'}))",
    "a result with a false number": "s.send(frame({'type': 'result', 'data': {'text/plain': 7}, 'execution_count': 'x'}))",
    "a done of its own": "s.send(frame({'type': 'done', 'status': 'ok'}))",
    "a step of its own": "s.send(frame({'type': 'step', 'source': 'print(1)'}))",
    "an end before the end": "s.send(frame({'type': 'executed', 'status': 'ok', 'answers': []}))",
    "an end with a false status": "s.send(frame({'type': 'executed', 'status': 'great', 'exit_code': 'x', 'answers': 'y'})); s.send(frame({'type': 'saved', 'state': {}}))",
    "a false state": "s.send(frame({'type': 'executed', 'status': 'ok'})); s.send(frame({'type': 'saved', 'state': 5}))",
    "a hundred questions": "[s.send(frame({'type': 'input_request', 'prompt': 'x', 'password': False})) for _ in range(100)]",
    "a descriptor": "import array; s.sendmsg([b'+'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [os.open('/dev/zero', os.O_RDONLY)]))])",
    "a pipe for a file": "import array; r, w = os.pipe(); s.sendmsg([b'+'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [r]))])",
    "a sparse terabyte": "f = os.memfd_create('x'); os.ftruncate(f, 1 << 40); socket.send_fds(s, [b'+'], [f])",
}  # fmt: skip


def test_forged_packets_end_their_own_step_at_most(sandboxes, subtests):
    sandbox, other = sandboxes(), sandboxes()
    for name, attack in FORGED.items():
        with subtests.test(name):
            try:
                done = sandbox.run(
                    f"{CHANNEL}\n{attack}\nimport time; time.sleep(0.2)",
                    stdin=lambda prompt: "answer",
                )
            except errors.RoomLostError as error:
                assert error.started
            except errors.LinkError as error:
                assert "runner" in str(error)
            else:
                assert done.status in ("ok", "error", "limit", "interrupted", "lost")
            assert printed(sandbox.run("print('goes on')")) == "goes on\n"
    assert printed(other.run("print(1)")) == "1\n"


def test_a_display_of_its_own_is_only_a_display(sandboxes):
    """What a cell may show, it may also show by hand: the same caps hold, nothing else happens."""
    done = sandboxes().run(
        f"{CHANNEL}\ns.send(frame({{'type': 'display', 'data': {{'text/plain': 'forged'}}, 'metadata': {{}}, 'transient': {{'display_id': 'someone-elses'}}, 'update': True}}))\nimport time; time.sleep(0.1); print('after')"
    )
    assert done.status == "ok"
    assert printed(done).endswith("after\n")


# -- the supervisor replaced: a distribution of the base goes, so the next room starts cold with the state's own python

PLANT = """
import os, shutil, glob
site = glob.glob('/home/sandbox/.venv/lib/python3*/site-packages')[0]
shutil.rmtree(sorted(glob.glob(site + '/*.dist-info'))[0])
open(site + '/sitecustomize.py', 'w').write('''
import os, socket, struct, json, sys, threading
def frame(head, body=b''):
    text = json.dumps(head).encode()
    return struct.pack('!II', len(text), len(body)) + text + body
if '--nonce' in sys.argv or True:
    nonce = open('/proc/self/cmdline').read().split(chr(0))
    if '--nonce' in nonce:
        s = socket.socket(fileno=3)
        s.sendall(frame({{'type': 'hello', 'nonce': nonce[nonce.index('--nonce') + 1], 'protocol': 1, 'python': '3', 'pid': 1}}))
        s.recv(1 << 16)
        {attack}
        import time; time.sleep(600)
''')
"""

HOSTILE = {
    "a flood of displays": ("while True: s.sendall(frame({'type': 'display', 'data': {'text/html': 'x' * 1000000}, 'metadata': {}}))", "limit"),
    "a flood of text": ("while True: s.sendall(frame({'type': 'stream', 'name': 'stdout', 'text': 'x' * 1000000}))", "limit"),
    "a flood of tiny frames": ("while True: s.sendall(frame({'type': 'clear', 'wait': False}) * 1000)", "limit"),
    "a flood of files": ("while True: s.sendall(frame({'type': 'file', 'path': 'f', 'kind': 'new', 'size': 1, 'mode': 420, 'skipped': ''}, b'x' * 1000000))", "limit"),
    "a flood of questions": ("[s.sendall(frame({'type': 'input_request', 'prompt': 'x'})) for _ in range(1000)]", "limit"),
    "a false done": ("s.sendall(frame({'type': 'done', 'status': 'splendid'}))", LinkError),
    "a done with false fields": ("s.sendall(frame({'type': 'done', 'status': 'ok', 'usage': [1], 'killed': 7}))", LinkError),
    "an unknown frame": ("s.sendall(frame({'type': 'evict'}))", LinkError),
    "lengths beyond the cap": ("s.sendall(struct.pack('!II', 0xffffffff, 1))", LinkError),
    "no frame": ("s.sendall(struct.pack('!II', 5, 0) + b'hello')", LinkError),
    "an early end": ("s.close(); os._exit(0)", errors.RoomLostError),
}  # fmt: skip


SLOW_HOSTILE = {
    "a flood of text",
    "a flood of tiny frames",
    "a flood of files",
    "a done with false fields",
    "an unknown frame",
    "no frame",
}


@pytest.mark.parametrize("name", shortened(HOSTILE, SLOW_HOSTILE))
def test_a_hostile_supervisor_reaches_nothing(sandboxes, name):
    attack, end = HOSTILE[name]
    sandbox, other = sandboxes(), sandboxes()
    sandbox.run("kept = 1")
    planted = sandbox.run(PLANT.format(attack=attack))
    assert planted.error is None, planted.error
    if end == "limit":
        done = sandbox.run("pass", stdin=lambda prompt: "x")
        assert (done.status, done.error.name) == ("limit", "OutputLimitError")
    else:
        with pytest.raises(end):
            sandbox.run("pass")
    assert printed(other.run("print(1)")) == "1\n"
    sandbox.rewind(1)
    assert printed(sandbox.run("print(kept)")) == "1\n"


def test_a_supervisor_that_never_ends_is_ended_from_outside(sandboxes, monkeypatch):
    monkeypatch.setattr("dagger_kernel.engines.local.guard.AFTERWARDS", 1.0)
    sandbox = sandboxes(wall_seconds=2.0)
    sandbox.run(PLANT.format(attack="pass"))
    done = sandbox.run("pass")
    assert (done.status, done.error.name) == ("limit", "WallClockLimitError")
    sandbox.rewind(0)
    assert printed(sandbox.run("print('free')")) == "free\n"


@pytest.mark.parametrize(
    "fields",
    [{"status": None}, {"status": "done"}, {"status": "ok", "usage": []}, {"status": "ok", "exit_code": "0"}, {"status": "ok", "answers": {}},
     {"status": "ok", "truncated": 1}, {"status": "ok", "state": "x"}, {"status": ["ok"]}],
)  # fmt: skip
def test_outcomes_are_checked(fields):
    with pytest.raises(LinkError):
        outcome_from({"type": "done", **fields})


# -- what a sandbox leaves for later: pickles and manifests


def test_no_module_of_the_host_can_unpickle():
    """Only what runs inside a sandbox (runner/) may know pickle and its relatives."""
    root = Path(dagger_kernel.__file__).parent
    forbidden = {
        "pickle",
        "_pickle",
        "cPickle",
        "dill",
        "cloudpickle",
        "marshal",
        "shelve",
        "joblib",
    }
    for path in root.rglob("*.py"):
        if "runner" in path.relative_to(root).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not {name.split(".")[0] for name in names} & forbidden, path
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("read_pickle", "unsafe_load")
            ):
                raise AssertionError(path)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_planted_pickles_and_manifests_do_nothing_outside(sandboxes, tmp_path):
    """Every file of the kept state becomes a pickle that makes a file on the host, if the host reads it."""
    mark = tmp_path / "pwned"
    sandbox, other = sandboxes(), sandboxes()
    sandbox.run("x = list(range(10))")
    code = (
        f"import os\nbomb = {pickle.dumps(Bomb(str(mark)))!r}\n"
        "if os.fork() == 0:\n"
        "    for folder, _, names in os.walk('/.dk'):\n"
        "        for name in names:\n"
        "            try: open(os.path.join(folder, name), 'wb').write(bomb)\n"
        "            except OSError: pass\n"
        "    open('/.dk/manifest.json', 'wb').write(bomb); open('/.dk/files.json', 'wb').write(b'[' * 100000)\n"
        "    os._exit(0)\n"
        "os.wait(); del bomb"
    )
    try:
        sandbox.run(code)
    except errors.RoomLostError as error:  # its own supervisor may stumble over it
        assert error.started
    try:
        sandbox.run("print(x)")
        sandbox.files(recursive=False)
    except errors.DaggerKernelError:
        pass
    assert not mark.exists()
    assert printed(other.run("print(1)")) == "1\n"
    sandbox.rewind(1)
    assert printed(sandbox.run("print(x[-1])")) == "9\n"


def test_what_lies_beside_a_layer_cannot_be_forged_from_inside(sandboxes):
    """layer.json is above the upper directory: a file of that name in the room is only a file."""
    sandbox = sandboxes()
    done = sandbox.run(
        "open('/home/sandbox/layer.json', 'w').write('{}'); open('/tmp/layer.json', 'w').write('{}'); open('/.dk/layer.json', 'w').write('{}'); x = 1"
    )
    layer = sandboxes.data_dir / "layers" / done.key[:20] / "layer.json"
    assert printed(sandbox.run("print(x)")) == "1\n"
    assert json.loads(layer.read_text())["key"] == done.key


__all__ = ["Sandbox"]
