"""The log on SQLite and on a real PostgreSQL: every test that takes ``log`` or ``settings`` runs on both."""

import shutil

import pytest

from dagger_kernel.log import advisory, open_log
from dagger_kernel.settings import Settings

from .server import Server, find_binaries

BACKENDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server with an empty, migrated database as a template."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    found = Server(binaries)
    try:
        found.execute("CREATE DATABASE migrated TEMPLATE template0")
        open_log(Settings(data_dir="/nowhere", database_url=found.url("migrated"))).close()
        yield found
    finally:
        found.remove()


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Which database; a test that is about one of them is marked ``SQLITE`` or ``POSTGRESQL``."""
    return request.param


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory):
    """An empty SQLite log, to copy."""
    directory = tmp_path_factory.mktemp("migrated")
    open_log(Settings(data_dir=str(directory))).close()
    return directory / "log.sqlite"


@pytest.fixture
def make_settings(backend, request, tmp_path):
    """Make settings of one more log; ``migrated``: it has its tables already."""
    server = request.getfixturevalue("server") if backend == "postgresql" else None
    template = None if server else request.getfixturevalue("migrated_file")
    made = []

    def make(*, migrated=True, **fields):
        data_dir = tmp_path / f"data{len(made)}"
        url = ""
        if server:
            url = server.database(migrated=migrated)
        elif migrated:
            data_dir.mkdir(mode=0o700)
            shutil.copy(template, data_dir)
        made.append((url, migrated))
        return Settings(data_dir=str(data_dir), database_url=url, **fields)

    yield make
    advisory.close_sessions()
    for url, migrated in made:
        if server:
            server.give_back(url, migrated=migrated)


@pytest.fixture
def settings(make_settings):
    return make_settings()


@pytest.fixture
def log(settings):
    store = open_log(settings)
    yield store
    store.close()


@pytest.fixture
def sandbox(log):
    return log.create_sandbox("owner", "notebook.ipynb")


@pytest.fixture
def raw(settings):
    """Execute SQL on the log's database as its owner, beside the package."""
    import sqlite3

    import psycopg

    connections = []

    def execute(statement, *parameters):
        if settings.database_url:
            connection = psycopg.connect(settings.database_url, autocommit=True)
            statement = statement.replace("?", "%s")
        else:
            path = settings.data_path / "log.sqlite"
            connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        connections.append(connection)
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else None

    def close():
        while connections:
            connections.pop().close()

    execute.close = close
    yield execute
    close()
