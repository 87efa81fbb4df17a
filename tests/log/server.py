"""A real PostgreSQL server in a temporary directory, run by an unprivileged user."""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

OPTIONS = {
    # A killed process loses nothing of the system's cache; power cuts are not what is tested.
    "fsync": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}


def find_binaries():
    """Return the directory of PostgreSQL's programs, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    path = found[-1] if found else shutil.which("initdb")
    return Path(path).parent if path else None


class Server:
    """One server; `database` makes a fresh database in it."""

    def __init__(self, binaries):
        self.binaries = binaries
        self.directory = Path(tempfile.mkdtemp(prefix="dk-pg-", dir="/tmp"))
        self.options = {}
        if os.geteuid() == 0:
            user = "postgres" if "postgres" in {one.pw_name for one in pwd.getpwall()} else "nobody"
            account = pwd.getpwnam(user)
            os.chown(self.directory, account.pw_uid, account.pw_gid)
            self.options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = None
        self.count = 0
        self.free = []
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "dk", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        self.start()

    @property
    def data(self):
        return str(self.directory / "data")

    def _run(self, name, *arguments):
        subprocess.run(
            [self.binaries / name, *arguments],
            check=True, capture_output=True, cwd="/", timeout=60, **self.options,
        )  # fmt: skip

    def start(self):
        """Start the server and wait until it answers."""
        settings = OPTIONS | {
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
        }
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.directory / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [self.binaries / "postgres", "-D", self.data, *arguments],
                stdout=log, stderr=log, cwd="/", **self.options,
            )  # fmt: skip
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                self.execute("SELECT 1")
                return
            assert time.monotonic() < deadline, (self.directory / "server.log").read_text()
            time.sleep(0.05)

    def stop(self, how=signal.SIGQUIT):
        """Stop the server: SIGQUIT like a crash, SIGINT in order."""
        self.process.send_signal(how)
        self.process.wait(timeout=30)

    def remove(self):
        self.stop(signal.SIGINT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, name):
        return f"postgresql://dk@127.0.0.1:{self.port}/{name}"

    def execute(self, statement, database="postgres"):
        """Run a statement as superuser, outside a transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def database(self, *, migrated=True):
        """Return the URL of an empty database, with or without the log's tables."""
        if migrated and self.free:
            url = self.free.pop()
            self._empty(url)
            return url
        self.count += 1
        name = f"t{self.count}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {'migrated' if migrated else 'template0'}")
        return self.url(name)

    def give_back(self, url, *, migrated=True):
        """Take a database back: one that still has this version's tables is used again."""
        name = url.rpartition("/")[2]
        if migrated:
            self.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                f"WHERE datname = '{name}' AND pid <> pg_backend_pid()"
            )
            self.free.append(url)
        else:
            self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _empty(self, url):
        tables = "sandbox, head, step, result, event, blob, artifact, kernel_session"
        with psycopg.connect(url, autocommit=True) as connection:
            # As a replica's applier: without the triggers that refuse this.
            connection.execute("SET session_replication_role = replica")
            connection.execute(f"TRUNCATE {tables}")
