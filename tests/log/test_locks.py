import signal
import threading
import time

import pytest

from dagger_kernel.errors import LogUnavailableError, SandboxBusyError, SandboxNotFoundError
from dagger_kernel.log import SandboxLock, advisory
from dagger_kernel.settings import Settings

from .helpers import POSTGRESQL, SQLITE, start

ID = "a" * 32


@pytest.fixture
def holder(settings):
    """A process that holds the lock of `ID`."""
    processes = []

    def begin():
        process = start("hold_lock.py", settings, ID)
        processes.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def test_one_holder_at_a_time(settings):
    first, second = SandboxLock(settings, ID), SandboxLock(settings, ID)
    other = SandboxLock(settings, "b" * 32)
    first.acquire()
    assert first.held
    with other, pytest.raises(SandboxBusyError) as caught:
        second.acquire()
    assert caught.value.sandbox_id == ID
    assert "process" in caught.value.holder
    first.release()
    first.release()
    with second:
        assert second.held
        assert not first.held


def test_who_waits_gets_it_when_it_is_free(settings):
    first, second = SandboxLock(settings, ID), SandboxLock(settings, ID)
    first.acquire()
    threading.Timer(0.2, first.release).start()
    started = time.monotonic()
    second.acquire(timeout=20)
    assert 0.1 < time.monotonic() - started < 15
    second.release()


def test_a_wait_can_be_cancelled(settings):
    first, second = SandboxLock(settings, ID), SandboxLock(settings, ID)
    calls = iter([False, False, True])
    with first, pytest.raises(SandboxBusyError):
        second.acquire(timeout=60, cancelled=lambda: next(calls))


def test_another_process_is_named_and_its_death_frees_the_lock(settings, holder):
    process = holder()
    lock = SandboxLock(settings, ID)
    with pytest.raises(SandboxBusyError) as caught:
        lock.acquire(timeout=0.1)
    assert str(process.pid) in caught.value.holder
    process.send_signal(signal.SIGKILL)
    lock.acquire(timeout=20)
    lock.release()


def test_a_stopped_holder_still_holds(settings, holder):
    process = holder()
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(SandboxBusyError):
        SandboxLock(settings, ID).acquire(timeout=0.1)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 65, "a\x00", "."])
def test_what_is_no_id_is_no_path(settings, name):
    with pytest.raises(SandboxNotFoundError):
        SandboxLock(settings, name)


def test_a_lock_that_cannot_be_made_is_told(tmp_path, backend):
    (tmp_path / "file").write_text("")
    url = "" if backend == "sqlite" else "postgresql://dk@127.0.0.1:1/x"
    lock = SandboxLock(Settings(data_dir=str(tmp_path / "file"), database_url=url), ID)
    with pytest.raises(LogUnavailableError):
        lock.acquire()
    assert not lock.held


@SQLITE
def test_the_holders_own_words_are_shown(settings):
    with (
        SandboxLock(settings, ID, holder="the notebook a.ipynb"),
        pytest.raises(SandboxBusyError, match=r"in use by the notebook a\.ipynb"),
    ):
        SandboxLock(settings, ID).acquire()
    path = settings.data_path / "locks" / f"{ID}.lock"
    path.write_text("garbage")
    with SandboxLock(settings, ID, holder="x") as lock:
        path.write_text("garbage")
        assert lock.held
        with pytest.raises(SandboxBusyError, match="another process"):
            SandboxLock(settings, ID).acquire()


@POSTGRESQL
def test_a_lock_lost_with_its_connection_is_taken_again(settings, server):
    lock = SandboxLock(settings, ID)
    lock.acquire()
    lock.renew()
    session = advisory.session(_url(settings))
    (pid,) = session.row("SELECT pg_backend_pid()")
    server.execute(f"SELECT pg_terminate_backend({pid})")
    lock.renew()
    assert lock.held
    with pytest.raises(SandboxBusyError):
        SandboxLock(settings, ID).acquire()
    lock.release()


@POSTGRESQL
def test_a_lost_lock_that_somebody_took_is_told(settings, server, holder):
    lock = SandboxLock(settings, ID)
    lock.acquire()
    (pid,) = advisory.session(_url(settings)).row("SELECT pg_backend_pid()")
    server.execute(f"SELECT pg_terminate_backend({pid})")
    holder()
    with pytest.raises(SandboxBusyError):
        lock.renew()
    assert not lock.held
    lock.release()


def _url(settings):
    from dagger_kernel.log.database import Database

    return Database.locate(settings)
