import os
import subprocess
import sys

import pytest
from sqlalchemy import event, inspect

from dagger_kernel.errors import LogUnavailableError, LogVersionError, SettingError
from dagger_kernel.log import open_log, schema
from dagger_kernel.log.database import Database
from dagger_kernel.log.tables import SCHEMA_VERSION, metadata
from dagger_kernel.settings import Settings

from .helpers import ROOT, SQLITE, forked, run_cell


@pytest.fixture
def empty(make_settings):
    return make_settings(migrated=False)


@pytest.fixture
def database(empty):
    found = Database.from_settings(empty)
    if found.is_sqlite:
        found.make_file()
    yield found
    found.close()


def test_migrations_make_what_the_tables_say(database):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    schema.upgrade(database)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


def test_the_constant_is_the_migrations_head():
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(ROOT / "dagger_kernel/log/migrations"))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA_VERSION]


def test_migrations_go_down_and_up_again(database, empty):
    def tables():
        with database.engine.connect() as connection:
            return set(inspect(connection).get_table_names()) - {"alembic_version"}

    assert tables() == set()
    schema.upgrade(database)
    assert tables() == set(metadata.tables)
    schema.downgrade(database, "base")
    assert tables() == set()
    assert schema.version(database) == ""
    with database.engine.connect() as connection:
        if database.is_sqlite:
            left = connection.exec_driver_sql(
                "SELECT name FROM sqlite_master WHERE name LIKE '%_no_%'"
            )
        else:
            left = connection.exec_driver_sql(
                "SELECT proname FROM pg_proc WHERE proname LIKE 'dagger_kernel%%'"
            )
        assert left.fetchall() == []
    schema.upgrade(database)
    log = open_log(empty)
    run_cell(log, log.create_sandbox("ada"))
    assert log.verify() == []
    log.close()


def test_a_log_of_a_newer_version_is_left_alone(log, sandbox, settings, raw):
    run_cell(log, sandbox)
    log.close()
    raw("UPDATE alembic_version SET version_num = '9999'")
    for create in (True, False):
        with pytest.raises(LogVersionError) as caught:
            open_log(settings, create=create)
        assert caught.value.found == "9999"
        assert "9999" in str(caught.value)
    raw(f"UPDATE alembic_version SET version_num = '{SCHEMA_VERSION}'")
    again = open_log(settings)
    assert again.sandbox(sandbox.id).steps == 1
    again.close()


def test_opening_without_creating_makes_nothing(empty):
    with pytest.raises(LogUnavailableError, match="There is no log"):
        open_log(empty, create=False)
    assert not empty.data_path.exists()
    open_log(empty).close()
    open_log(empty, create=False).close()


def test_an_empty_version_table_counts_as_no_log(empty, database):
    with database.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"
        )
    with pytest.raises(LogUnavailableError):
        open_log(empty, create=False)
    open_log(empty).close()


def test_processes_that_open_a_new_log_together_make_it_once(empty):
    def work(writer):
        log = open_log(empty)
        log.create_sandbox("process")
        log.close()
        os.write(writer, b"opened")

    children = [forked(work) for _ in range(6)]
    for child, stream in children:
        with stream:
            assert stream.read() == "opened"
        os.waitpid(child, 0)
    log = open_log(empty)
    assert len(log.sandboxes()) == 6
    assert log.verify() == []
    log.close()


def test_an_up_to_date_log_opens_without_alembic_and_with_few_statements(settings, monkeypatch):
    seen = []
    original = Database.from_settings.__func__

    def watched(cls, settings):
        database = original(cls, settings)
        event.listen(
            database.engine,
            "before_cursor_execute",
            lambda _c, _cursor, statement, *_: seen.append(statement),
        )
        return database

    monkeypatch.setattr(Database, "from_settings", classmethod(watched))
    open_log(settings).close()
    wanted = [one for one in seen if not one.startswith(("BEGIN", "PRAGMA"))]
    assert len(wanted) <= 2, seen
    code = (
        "import sys; from dagger_kernel.log import open_log; from dagger_kernel.settings import Settings; "
        f"open_log(Settings(data_dir={settings.data_dir!r}, database_url={settings.database_url!r})).close(); "
        "assert not {'alembic', 'fsspec'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_alembic_prints_and_logs_nothing(empty, capfd, caplog):
    open_log(empty).close()
    assert capfd.readouterr() == ("", "")
    assert [one for one in caplog.records if one.levelname != "INFO"] == []


@SQLITE
def test_the_directory_and_files_are_the_owners_alone(empty):
    log = open_log(empty)
    sandbox = log.create_sandbox("ada")
    run_cell(log, sandbox)
    log.blobs.put(b"x")
    for path in [empty.data_path, *empty.data_path.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    log.close()


@pytest.mark.parametrize(
    "url", ["mysql://h/d", "sqlite://", "sqlite:///:memory:", "nonsense", "postgresql+x://\x00@/:"]
)
def test_only_urls_of_sqlite_files_and_postgresql_are_taken(url, tmp_path):
    with pytest.raises((SettingError, LogUnavailableError)):
        open_log(Settings(data_dir=str(tmp_path), database_url=url))


def test_a_password_is_not_shown(tmp_path):
    for url in ("mysql://u:hunter2@h/d", "postgresql://u:hunter2@127.0.0.1:1/d"):
        with pytest.raises((SettingError, LogUnavailableError)) as caught:
            open_log(Settings(data_dir=str(tmp_path), database_url=url))
        assert "hunter2" not in str(caught.value)


def test_a_sqlite_url_is_taken(tmp_path):
    settings = Settings(data_dir=str(tmp_path / "d"), database_url=f"sqlite:///{tmp_path}/e/x.db")
    log = open_log(settings)
    run_cell(log, log.create_sandbox("ada"))
    log.close()
    assert (tmp_path / "e/x.db").exists()
