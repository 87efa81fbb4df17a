import os
import signal
import threading
import time
from itertools import pairwise

import pytest

from dagger_kernel.errors import CapacityError, LogUnavailableError
from dagger_kernel.log import Slots, advisory
from dagger_kernel.settings import Settings

from .helpers import POSTGRESQL, as_nobody, finished, open_to_all, start


@pytest.fixture
def limits():
    return [2, 2]


@pytest.fixture
def slots(settings, limits):
    return Slots(settings, "local", limits=lambda: tuple(limits))


def positions(tickets):
    return [ticket.position() for ticket in tickets]


def test_the_first_run_the_next_wait_the_rest_are_refused(slots):
    tickets = [slots.enter() for _ in range(4)]
    assert positions(tickets) == [0, 0, 1, 2]
    with pytest.raises(CapacityError) as caught:
        slots.enter()
    assert (caught.value.running, caught.value.queued) == (2, 2)
    assert "MAX_RUNNING" in str(caught.value)
    tickets[1].release()
    tickets[1].release()
    assert positions(tickets) == [0, 0, 0, 1]
    tickets.append(slots.enter())
    assert positions(tickets)[2:] == [0, 1, 2]
    for ticket in tickets:
        ticket.release()
    assert slots.enter().position() == 0


def test_who_leaves_the_queue_lets_the_others_up(slots):
    tickets = [slots.enter() for _ in range(4)]
    tickets[2].release()
    assert positions(tickets)[3] == 1
    with slots.enter() as last:
        assert last.position() == 2


def test_engines_do_not_share_places(settings, slots, limits):
    limits[:] = [1, 0]
    other = Slots(settings, "dagger", limits=lambda: tuple(limits))
    with slots.enter(), other.enter():
        with pytest.raises(CapacityError):
            slots.enter()
        with pytest.raises(CapacityError):
            other.enter()


def test_limits_change_while_steps_wait(slots, limits):
    tickets = [slots.enter() for _ in range(4)]
    limits[:] = [3, 2]
    assert positions(tickets) == [0, 0, 0, 1]
    tickets.append(slots.enter())
    limits[:] = [1, 9]
    assert positions(tickets) == [0, 0, 0, 3, 4]  # who runs goes on
    tickets[0].release()
    assert positions(tickets)[3:] == [2, 3]
    limits[:] = [0, 0]
    with pytest.raises(CapacityError):
        slots.enter()


def test_settings_give_the_limits(settings):
    slots = Slots(Settings(data_dir=settings.data_dir, database_url=settings.database_url,
                           max_running=1, max_queued=1), "local")  # fmt: skip
    with slots.enter(), slots.enter() as second:
        assert second.position() == 1
        with pytest.raises(CapacityError):
            slots.enter()


def test_acquire_waits_and_tells_the_place(slots):
    first, second, third = slots.enter(), slots.enter(), slots.enter()
    told = []
    changes = [first.release, second.release]

    def position(place):
        told.append(place)
        if place:
            changes.pop(0)()

    ticket = slots.acquire(position)
    assert told == [2, 1, 0]
    assert third.position() == 0
    third.release()
    ticket.release()
    told.clear()
    slots.acquire(told.append).release()
    assert told == []  # nothing to wait for


def test_a_wait_ends_when_it_is_cancelled_or_takes_too_long(slots):
    first, second = slots.enter(), slots.enter()
    with pytest.raises(CapacityError):
        slots.acquire(timeout=0.1)
    event = threading.Event()
    with pytest.raises(CapacityError):
        slots.acquire(lambda _place: event.set(), cancelled=event.is_set)
    with slots.enter() as third:  # they left the queue
        assert third.position() == 1
    first.release()
    second.release()


def test_a_failing_callback_gives_the_place_back(slots):
    held = [slots.enter(), slots.enter()]

    def position(_place):
        raise RuntimeError("the user left")

    with pytest.raises(RuntimeError):
        slots.acquire(position)
    assert slots.enter().position() == 1
    for ticket in held:
        ticket.release()


def test_a_killed_process_frees_its_place(settings, slots, limits):
    limits[:] = [1, 5]
    process, waiting = (start("hold_slot.py", settings, "local", 1, 5) for _ in range(2))
    assert go(process).startswith("runs")
    assert go(waiting) == "place 1\n"
    ticket = slots.enter()
    assert ticket.position() == 2
    waiting.send_signal(signal.SIGKILL)
    waiting.communicate()
    _eventually(lambda: ticket.position() == 1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    _eventually(lambda: ticket.position() == 0)
    ticket.release()


def test_processes_run_in_the_order_they_came(settings):
    processes = [start("hold_slot.py", settings, "local", 1, 2) for _ in range(4)]
    # Each has its ticket before the next comes.
    said = [go(process) for process in processes]
    assert said == ["runs\n", "place 1\n", "place 2\n", "refused 1 2\n"]
    for before, after in pairwise(processes[:3]):
        tell(before)
        assert list(iter(after.stdout.readline, "runs\n"))[-1:] == ["place 0\n"]
    tell(processes[2])
    for process in processes:
        finished(process)


def test_many_threads_never_run_more_than_allowed(slots, limits):
    limits[:] = [3, 100]
    running, most, lock = 0, [], threading.Lock()
    errors = []

    def work():
        nonlocal running
        try:
            for _ in range(4):
                with slots.acquire():
                    with lock:
                        running += 1
                        most.append(running)
                    time.sleep(0.005)
                    with lock:
                        running -= 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(most) == 32
    assert max(most) <= 3


def test_a_queue_that_cannot_be_reached_is_told(tmp_path, backend):
    (tmp_path / "file").write_text("")
    url = "" if backend == "sqlite" else "postgresql://dk@127.0.0.1:1/x"
    slots = Slots(Settings(data_dir=str(tmp_path / "file"), database_url=url), "local")
    with pytest.raises(LogUnavailableError):
        slots.enter()


@POSTGRESQL
def test_a_place_lost_with_the_connection_is_taken_again(settings, server, slots, limits):
    from dagger_kernel.log.database import Database

    limits[:] = [0, 5]
    ticket = slots.enter()
    assert ticket.position() == 1
    session = advisory.session(Database.locate(settings))
    (pid,) = session.row("SELECT pg_backend_pid()")
    server.execute(f"SELECT pg_terminate_backend({pid})")
    assert ticket.position() == 1
    limits[:] = [1, 5]
    assert ticket.position() == 0
    ticket.release()
    limits[:] = [1, 0]
    slots.enter().release()


def test_users_of_a_machine_share_a_directory(tmp_path):
    """Each user's kernels have a log of their own and one queue."""
    if os.geteuid() != 0:
        pytest.skip("needs two users")
    shared = tmp_path / "queue"
    open_to_all(tmp_path)
    mine = Slots(Settings(data_dir=str(tmp_path / "mine")), "local", directory=shared)
    ticket = mine.enter()

    def theirs():
        settings = Settings(data_dir="/nonexistent", max_running=1, max_queued=1)
        return Slots(settings, "local", directory=shared).enter().position()  # dies with its ticket

    assert as_nobody(theirs) == "1"
    ticket.release()
    assert mine.enter().position() == 0


def tell(process):
    process.stdin.write("\n")
    process.stdin.flush()


def go(process):
    """Let a process take its ticket; return the first it says."""
    assert process.stdout.readline() == "ready\n"
    tell(process)
    return process.stdout.readline()


def _eventually(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
