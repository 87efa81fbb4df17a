"""kill -9 of a writer at any moment: what was acknowledged is there, once; what was not is not half there."""

import os
import random
import signal
import time

import pytest

from dagger_kernel.log import SandboxLock, advisory, open_log

from .helpers import forked, make_file, make_result, make_step

ROUNDS = 25


def write_until_killed(writer, settings, sandbox_id):
    """Run cells; acknowledge each append and each result by a line."""
    advisory.close_sessions()
    log = open_log(settings)
    lock = SandboxLock(settings, sandbox_id)
    while True:
        lock.acquire(timeout=30)
        tip = log.tip(sandbox_id)
        step = log.append(make_step(sandbox_id, tip), on_tip=True)
        os.write(writer, f"append {step.id} {step.seq}\n".encode())
        file = make_file(log, f"{step.seq}.bin", os.urandom(100) * 1000)
        log.finish(make_result(step, files=[file], outputs=[{"text": "x" * 70_000}]))
        os.write(writer, f"finish {step.id} {step.seq}\n".encode())
        lock.release()


def test_a_writer_killed_at_random_loses_nothing_it_acknowledged(settings):
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    log.close()
    random.seed(20)
    appended, finished = {}, set()
    for _ in range(ROUNDS):
        child, stream = forked(write_until_killed, settings, sandbox.id)
        with stream:
            # So many acknowledgements, and then any moment.
            lines = [stream.readline() for _ in range(random.randint(1, 6))]
            time.sleep(random.uniform(0, 0.005))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for line in [*lines, *stream]:
                if line.endswith("\n"):
                    what, identity, seq = line.split()
                    appended[identity] = int(seq)
                    finished |= {identity} if what == "finish" else set()
    log = open_log(settings)
    rows = log.steps(sandbox.id, limit=100_000)
    assert [step.seq for step, _ in rows] == list(range(1, len(rows) + 1))
    stored = {step.id: step.seq for step, _ in rows}
    assert appended.items() <= stored.items()
    assert finished <= {step.id for step, result in rows if result}
    # At most the one that ran when it was killed was not acknowledged.
    assert len(stored) - len(appended) <= ROUNDS
    assert log.verify() == []
    tip = log.tip(sandbox.id)
    chain = [step.id for step, _ in log.chain(tip.id, outputs=False)]
    assert chain == [step.id for step, result in rows if result]
    with SandboxLock(settings, sandbox.id) as lock:
        assert lock.held
    log.close()
    assert len(finished) > ROUNDS / 2


POINTS = [
    "blob-written", "blob-renamed", "begun", "inserted", "committing", "committed",
]  # fmt: skip


def die_at(writer, settings, sandbox_id, what, point):
    """Append (or finish) and kill oneself on the way."""
    advisory.close_sessions()
    log = open_log(settings)
    step = make_step(sandbox_id, log.tip(sandbox_id))
    if what == "finish":
        log.append(step)
    os.write(writer, step.id.encode())

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    dialect, commit = log._database.engine.dialect, log._database.engine.dialect.do_commit
    if point == "blob-written":
        os.replace = lambda *_: die()
    elif point == "blob-renamed":
        import dagger_kernel.log.blobs as blobs_module

        blobs_module._sync_directory = lambda *_: die()
    elif point == "begun":
        import dagger_kernel.log.writer as writer_module

        writer_module.place = lambda *_: die()
    elif point == "inserted":
        import dagger_kernel.log.writer as writer_module

        writer_module.move_head = lambda *_, **__: die()
    elif point == "committing":
        dialect.do_commit = lambda _connection: die()
    else:
        dialect.do_commit = lambda connection: (commit(connection), die())
    if what == "append":
        log.append(step)
    else:
        log.finish(make_result(step, files=[make_file(log, "a", b"a")], outputs=["x" * 70_000]))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("what", ["append", "finish"])
def test_a_writer_killed_at_a_point_leaves_all_or_nothing(settings, what, point):
    if what == "append" and point.startswith("blob"):
        return  # a cell has no blobs yet
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    before = log.append(make_step(sandbox))
    log.finish(make_result(before))
    log.close()
    child, stream = forked(die_at, settings, sandbox.id, what, point)
    with stream:
        identity = stream.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    log = open_log(settings)
    _eventually_free(log, sandbox)
    rows = {step.id: result for step, result in log.steps(sandbox.id)}
    there = point == "committed"
    if what == "append":
        assert (identity in rows) == there
    else:
        assert (rows[identity] is not None) == there
        assert len(log.artifacts(sandbox.id)) == there
    assert log.verify() == []
    step = log.append(make_step(sandbox, log.tip(sandbox.id)))
    log.finish(make_result(step))
    assert log.verify() == []
    log.close()


def _eventually_free(log, sandbox):
    """PostgreSQL notices a dead client when it reads from it; appending waits for that."""
    log.end_sandbox(sandbox.id)
