"""Several processes at once, without taking a sandbox's lock: the log keeps its order by itself."""

import os
import random
import threading
import time

from dagger_kernel.errors import CapacityError, LogError
from dagger_kernel.log import Slots, advisory, open_log

from .helpers import forked, make_file, make_result, make_step

PROCESSES = 4
EACH = 25


def joined(children):
    """Wait for forked processes; return what each wrote."""
    said = []
    for child, stream in children:
        with stream:
            said.append(stream.read())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return said


def append_many(writer, settings, sandbox_id, own_id):
    advisory.close_sessions()
    log = open_log(settings)
    for number in range(EACH):
        for target in (sandbox_id, own_id):
            step = log.append(make_step(target))
            os.write(writer, f"{step.seq} {step.id}\n".encode() if target == sandbox_id else b"")
            # The same bytes from all, so that blob rows meet too.
            log.finish(make_result(step, files=[make_file(log, "same", f"{number}".encode())]))
    log.close()


def test_appends_of_many_processes_are_numbered_without_gap_or_double(settings):
    log = open_log(settings)
    common = log.create_sandbox("ada")
    own = [log.create_sandbox("ada") for _ in range(PROCESSES)]
    log.close()
    said = joined([forked(append_many, settings, common.id, one.id) for one in own])
    log = open_log(settings)
    acknowledged = {}
    for text in said:
        mine = [line.split() for line in text.splitlines()]
        assert [int(seq) for seq, _ in mine] == sorted(int(seq) for seq, _ in mine)
        acknowledged |= {int(seq): identity for seq, identity in mine}
    rows = log.steps(common.id)
    assert {step.seq: step.id for step, _ in rows} == acknowledged
    assert sorted(acknowledged) == list(range(1, PROCESSES * EACH + 1))
    assert all(result for _, result in rows)
    for one in own:
        assert log.sandbox(one.id).steps == EACH
    assert log.verify() == []
    log.close()


def continue_tip(writer, settings, sandbox_id):
    advisory.close_sessions()
    log = open_log(settings)
    done = 0
    while done < 10:
        try:
            step = log.append(make_step(sandbox_id, log.tip(sandbox_id)), on_tip=True)
        except LogError as error:
            assert "moved on" in str(error)
            continue
        done += 1
        try:
            log.finish(make_result(step))
        except LogError:
            raise SystemExit(3) from None
    log.close()


def test_steps_on_the_tip_never_leave_a_finished_one_behind(settings):
    """Every finished step is in the chain of those that began after it finished."""
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    log.close()
    joined([forked(continue_tip, settings, sandbox.id) for _ in range(2)])
    log = open_log(settings)
    rows = log.steps(sandbox.id)
    finished = {}
    for step, result in rows:
        before = [one for one, when in finished.items() if when < step.created]
        chain = {one.id for one, _ in log.chain(step.parent_id)} if step.parent_id else set()
        if before:
            assert before[-1] in chain or step.parent_id in finished
        finished[step.id] = result.finished
    assert len(rows) == 20
    log.close()


def finish_all(writer, settings, ids):
    advisory.close_sessions()
    log = open_log(settings)
    for identity in ids:
        try:
            log.finish(make_result(identity))
            os.write(writer, f"{identity}\n".encode())
        except LogError as error:
            assert "has a result already" in str(error)
    log.close()


def test_a_result_that_two_processes_tell_is_stored_once(settings):
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    ids = [log.append(make_step(sandbox)).id for _ in range(30)]
    log.close()
    said = joined([forked(finish_all, settings, ids) for _ in range(3)])
    assert sorted("".join(said).split()) == sorted(ids)
    log = open_log(settings)
    assert all(result for _, result in log.steps(sandbox.id))
    assert log.verify() == []
    log.close()


def start_sessions(writer, settings, sandbox_id):
    advisory.close_sessions()
    log = open_log(settings)
    for _ in range(10):
        os.write(writer, f"{log.start_session(sandbox_id)}\n".encode())
    log.end_sandbox(sandbox_id)
    log.close()


def test_sessions_of_many_processes_have_numbers_of_their_own(settings):
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    log.close()
    said = joined([forked(start_sessions, settings, sandbox.id) for _ in range(3)])
    assert sorted(int(one) for one in "".join(said).split()) == list(range(1, 31))
    log = open_log(settings)
    assert log.sandbox(sandbox.id).state == "ended"
    assert log.verify() == []
    log.close()


def run_alone(writer, settings, marker, times):
    """Whoever runs makes the marker; finding it made means that two run."""
    advisory.close_sessions()
    slots = Slots(settings, "local", limits=lambda: (1, 0))
    while times:
        try:
            ticket = slots.enter()
        except CapacityError:
            time.sleep(random.uniform(0, 0.002))
            continue
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        os.unlink(marker)
        ticket.release()
        times -= 1


def test_processes_that_enter_together_never_run_together(settings, tmp_path, backend):
    times = 60 if backend == "postgresql" else 400
    joined([forked(run_alone, settings, tmp_path / "marker", times) for _ in range(4)])


def test_threads_share_a_store(log):
    sandbox = log.create_sandbox("ada")
    errors = []

    def work():
        try:
            for _ in range(15):
                log.finish(make_result(log.append(make_step(sandbox))))
                log.tip(sandbox.id)
                log.history("ada")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [step.seq for step, _ in log.steps(sandbox.id)] == list(range(1, 91))
    assert log.verify() == []
