"""What breaks below the log is told clearly, loses nothing and is survived where it can be."""

import os
import signal
import sqlite3
import subprocess
import threading
import time

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from dagger_kernel.errors import (
    LogError,
    LogUnavailableError,
    StorageFullError,
)
from dagger_kernel.log import SandboxLock, Slots, open_log
from dagger_kernel.log import database as database_module
from dagger_kernel.settings import Settings
from dagger_kernel.steps import Kind

from .helpers import (
    POSTGRESQL,
    SQLITE,
    as_nobody,
    finished,
    make_file,
    make_result,
    make_step,
    open_to_all,
    run_cell,
    start,
)

ROOT_ONLY = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to mount or to be somebody else"
)


# -- directories and disks


@SQLITE
@ROOT_ONLY
def test_a_read_only_directory_is_told(settings, log, sandbox, tmp_path):
    run_cell(log, sandbox)
    log.close()
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o755)
    os.chmod(settings.data_path, 0o755)
    os.chmod(settings.data_path / "log.sqlite", 0o644)
    open_to_all(tmp_path)
    for directory in (empty / "data", settings.data_path):
        other = Settings(data_dir=str(directory))
        said = as_nobody(lambda other=other: open_log(other))
        assert said.startswith("LogUnavailableError: ")
        assert str(directory) in said
        assert "Permission denied" in said
        assert "DAGGER_KERNEL_DATA_DIR" in said
    again = open_log(settings)
    assert again.sandbox(sandbox.id).steps == 1
    again.close()


def test_a_file_in_the_place_of_the_directory_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(LogUnavailableError, match=str(tmp_path)):
            open_log(Settings(data_dir=str(path)))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", str(place)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@ROOT_ONLY
def test_a_full_disk_is_told_loses_nothing_and_is_recovered_from(small_disk):
    settings = Settings(data_dir=str(small_disk / "data"))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 700_000)
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    acknowledged, parent = [], None
    with pytest.raises(StorageFullError) as caught:
        for _ in range(3000):
            step = log.append(make_step(sandbox, parent, source="x" * 3000))
            log.finish(make_result(step))
            parent = step
            acknowledged.append(step.id)
    assert "gc" in str(caught.value)
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(b"x" * 512)
    with pytest.raises(StorageFullError):
        log.blobs.put(b"x" * 100_000)
    with SandboxLock(settings, sandbox.id) as lock:
        assert lock.held
    with pytest.raises(StorageFullError):
        open_log(Settings(data_dir=str(small_disk / "other")))
    assert log.tip(sandbox.id).id == acknowledged[-1]  # reading goes on
    log.close()
    filler.unlink()
    ballast.unlink()
    log = open_log(settings)
    done = [step.id for step, result in log.steps(sandbox.id, limit=10_000) if result]
    assert done == acknowledged
    run_cell(log, sandbox, parent)
    assert log.verify() == []
    log.close()


@SQLITE
def test_a_file_size_limit_is_told_as_a_full_disk(settings):
    log = open_log(settings)
    log.close()
    said = finished(start("fill.py", settings, 600_000)).splitlines()
    assert len(said) == 3
    assert "full" in said[0]
    assert "No space is left" in said[1]
    assert said[2] == "went on"


@SQLITE
def test_a_database_that_stays_locked_is_told(settings, log, sandbox, monkeypatch):
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.2)
    other = open_log(settings)
    blocker = sqlite3.connect(settings.data_path / "log.sqlite", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(LogUnavailableError, match="keeps the log's database locked"):
            other.append(make_step(sandbox))
        assert other.tip(sandbox.id) is None  # readers are not locked out
    finally:
        blocker.close()
    run_cell(other, sandbox)
    other.close()


@SQLITE
def test_a_removed_directory_is_told(settings, log, sandbox):
    import shutil

    log.close()
    shutil.rmtree(settings.data_path)
    with pytest.raises(LogUnavailableError, match="There is no log"):
        open_log(settings, create=False)


@SQLITE
def test_a_cells_commits_reach_the_disk_soon_and_others_at_once(settings, monkeypatch):
    from dagger_kernel.log import flusher

    synced, modes = [], []
    fdatasync = os.fdatasync
    monkeypatch.setattr(flusher.os, "fdatasync", lambda one: (fdatasync(one), synced.append(one)))
    log = open_log(settings)

    def watch(_connection, _cursor, statement, *_):
        modes.extend([statement] if "synchronous" in statement else [])

    event.listen(log._database.engine, "before_cursor_execute", watch)
    sandbox = log.create_sandbox("ada")
    assert modes == ["PRAGMA synchronous=FULL"]
    assert synced == []
    step = log.append(make_step(sandbox))
    log.finish(make_result(step))
    assert modes[1:] == ["PRAGMA synchronous=NORMAL"] * 2
    deadline = time.monotonic() + 20
    while not synced:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    log.append(make_step(sandbox, kind=Kind.REWIND, payload={"to": step.id}))
    assert modes[3:] == ["PRAGMA synchronous=FULL"]
    log.close()
    assert "dagger-kernel-log-flusher" not in {thread.name for thread in threading.enumerate()}


@SQLITE
def test_a_disk_that_cannot_be_synchronised_stops_nothing(settings, monkeypatch):
    from dagger_kernel.log import flusher

    tried = threading.Event()

    def broken(_descriptor):
        tried.set()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(flusher.os, "fdatasync", broken)
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    for _ in range(3):
        tried.clear()
        run_cell(log, sandbox)
        assert tried.wait(20)
    log.close()


# -- PostgreSQL


def test_a_server_that_does_not_answer_is_told(tmp_path):
    started = time.monotonic()
    with pytest.raises(LogUnavailableError, match="does not answer"):
        open_log(Settings(data_dir=str(tmp_path), database_url="postgresql://dk@127.0.0.1:1/x"))
    assert time.monotonic() - started < 10


@pytest.mark.postgresql
def test_an_unknown_database_or_role_is_told(server, tmp_path):
    url = f"postgresql://nobody@127.0.0.1:{server.port}/postgres"
    for wrong in (server.url("nothing_here"), url):
        with pytest.raises(LogUnavailableError):
            open_log(Settings(data_dir=str(tmp_path), database_url=wrong))


@POSTGRESQL
def test_a_role_without_rights_is_told(server, settings, log, sandbox):
    name = settings.database_url.rpartition("/")[2]
    server.execute("DROP ROLE IF EXISTS reader")
    server.execute("CREATE ROLE reader LOGIN")
    server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", name)
    url = settings.database_url.replace("dk@", "reader@")
    reader = open_log(Settings(data_dir=settings.data_dir, database_url=url))
    try:
        assert reader.sandbox(sandbox.id).steps == 0
        with pytest.raises(LogUnavailableError, match="permission denied"):
            reader.append(make_step(sandbox))
    finally:
        reader.close()
        server.execute("DROP OWNED BY reader", name)
        server.execute("DROP ROLE reader")


@POSTGRESQL
def test_a_restarted_server_is_found_again(server, log, sandbox):
    step = log.append(make_step(sandbox))
    server.stop(signal.SIGQUIT)
    threading.Timer(0.3, server.start).start()
    log.finish(make_result(step))  # in the middle of a cell
    assert log.tip(sandbox.id) == step
    assert log.verify() == []


@POSTGRESQL
def test_a_server_that_stays_away_is_told(server, settings, monkeypatch):
    log = open_log(settings)
    monkeypatch.setattr(log._database, "_reconnect_seconds", 0.5)
    sandbox = log.create_sandbox("ada")
    server.stop()
    try:
        with pytest.raises(LogUnavailableError, match="does not answer"):
            log.append(make_step(sandbox))
    finally:
        server.start()
    run_cell(log, sandbox)
    assert log.verify() == []
    log.close()


@POSTGRESQL
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["append", "finish", "create", "end", "purge"])
def test_a_connection_lost_at_commit_doubles_and_loses_nothing(
    server, log, sandbox, monkeypatch, what, when
):
    step = run_cell(log, sandbox)
    open_step = log.append(make_step(sandbox, step))
    dialect = log._database.engine.dialect
    commit, lost = dialect.do_commit, []

    def lose(connection):
        if when == "after":
            commit(connection)
        if not lost:
            lost.append(connection)
            server.execute(
                f"SELECT pg_terminate_backend({connection.driver_connection.info.backend_pid})"
            )
            time.sleep(0.05)
        commit(connection) if when == "before" else connection.execute("SELECT 1")

    monkeypatch.setattr(dialect, "do_commit", lose)
    count = 2
    if what == "append":
        new = make_step(sandbox, step)
        assert log.append(new).seq == 3
        count = 3
    elif what == "finish":
        result = make_result(open_step, files=[make_file(log, "a", b"a")])
        assert log.finish(result) == result
        monkeypatch.setattr(dialect, "do_commit", commit)
        with pytest.raises(LogError, match="already"):
            log.finish(result)
    elif what == "create":
        log.create_sandbox("ada")
        assert len(log.sandboxes("ada")) == 1
    elif what == "end":
        log.end_sandbox(sandbox.id)
        assert log.sandbox(sandbox.id).state == "ended"
    else:
        log.purge_sandbox(sandbox.id)
        assert log.sandbox(sandbox.id).state == "purged"
        count = 0
    assert lost
    assert len(log.steps(sandbox.id)) == count
    assert log.verify() == []


@POSTGRESQL
def test_connections_killed_all_the_time_lose_and_double_nothing(server, settings, log, sandbox):
    name = settings.database_url.rpartition("/")[2]
    stop = threading.Event()

    def kill():
        while not stop.is_set():
            server.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )
            time.sleep(0.04)

    killer = threading.Thread(target=kill)
    killer.start()
    acknowledged, parent = [], None
    try:
        for _ in range(25):
            parent = run_cell(log, sandbox, parent)
            acknowledged.append(parent.id)
    finally:
        stop.set()
        killer.join()
    assert [step.id for step, result in log.steps(sandbox.id) if result] == acknowledged
    assert log.verify() == []


@POSTGRESQL
def test_a_pool_without_connections_is_told(server, settings, monkeypatch):
    log = open_log(settings)
    sandbox = log.create_sandbox("ada")
    log.close()
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.2)
    log = open_log(settings)
    held = [log._database.engine.connect() for _ in range(5)]
    try:
        with pytest.raises(LogUnavailableError, match="All connections"):
            log.tip(sandbox.id)
    finally:
        for connection in held:
            connection.close()
    assert log.tip(sandbox.id) is None
    log.close()


@POSTGRESQL
def test_a_server_without_connections_is_told(server, settings):
    taken = []
    try:
        with pytest.raises(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(settings.database_url))
        with pytest.raises(LogUnavailableError):
            open_log(settings)
    finally:
        for connection in taken:
            connection.close()
    open_log(settings).close()


@POSTGRESQL
def test_a_server_that_became_a_standby_is_waited_for(server, settings, log, sandbox):
    name = settings.database_url.rpartition("/")[2]
    run_cell(log, sandbox)
    server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    log._database.engine.dispose()
    back = threading.Timer(
        0.3, lambda: server.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    )
    back.start()
    run_cell(log, sandbox)
    back.join()
    assert log.verify() == []


@POSTGRESQL
def test_slots_and_locks_survive_a_restart_of_the_server(server, settings, sandbox):
    lock, slots = SandboxLock(settings, sandbox.id), Slots(settings, "local")
    lock.acquire()
    ticket = slots.enter()
    server.stop()
    server.start()
    lock.renew()
    assert lock.held
    assert ticket.position() == 0
    ticket.release()
    lock.release()
    for use in (lambda: slots.acquire().release(), lock.acquire):
        server.stop()
        server.start()
        use()  # the connection kept from before is lost, and nothing depended on it
    lock.release()


@pytest.mark.parametrize(
    ("sqlstate", "kind"),
    [
        ("53100", StorageFullError),
        ("XX001", "LogIntegrityError"),
        ("53300", LogUnavailableError),
        ("08006", LogUnavailableError),
        ("57P01", LogUnavailableError),
        ("28P01", LogUnavailableError),
        ("55P03", LogUnavailableError),
        ("22001", LogError),
    ],
)
def test_postgresqls_codes_are_translated(sqlstate, kind):
    from dagger_kernel.log.faults import translate

    class Raised(psycopg.Error):
        pass

    Raised.sqlstate = sqlstate
    error = translate(DBAPIError("SELECT 1", {}, Raised("reason\nmore"), False))
    name = kind if isinstance(kind, str) else kind.__name__
    assert type(error).__name__ == name
    assert "more" not in str(error)
