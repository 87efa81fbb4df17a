"""A package whose download breaks off builds no base, leaves nothing behind and is fetched again the next time."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import os
import re
import threading
import zipfile

import pytest

from dagger_kernel.engines.layout import RUNNER_NEEDS
from dagger_kernel.engines.local import LocalEngine
from dagger_kernel.errors import BaseBuildError
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings

VICTIM = "sandpit"


def metadata(name):
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()


def wheel(name):
    """Return file name and bytes of a wheel that holds one module."""
    stem = name.replace("-", "_")
    info = f"{stem}-1.0.dist-info"
    files = {
        f"{stem}.py": b"here = True\n" + b"# padding\n" * 5000,
        f"{info}/METADATA": metadata(name),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return f"{stem}-1.0-py3-none-any.whl", packed.getvalue()


# How the file of the victim is answered while it is broken: (claimed length, bytes sent).
BREAKS = {
    "the connection ends half way": lambda data: (len(data), data[: len(data) // 2]),
    "half of it, as if it were all": lambda data: (len(data) // 2, data[: len(data) // 2]),
    "other bytes of the same length": lambda data: (len(data), data[:-200] + bytes(200)),
    "nothing": lambda data: (0, b""),
}


@pytest.fixture
def index():
    """A package index on the loopback that holds what a base needs; ``index.broken`` spoils the victim."""
    wheels = dict(wheel(name) for name in (*RUNNER_NEEDS, VICTIM))
    # Metadata beside the wheels (PEP 658): resolving never reads the wheels themselves.
    told = {f"{wheel(name)[0]}.metadata": metadata(name) for name in (*RUNNER_NEEDS, VICTIM)}

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802 - the library's name
            name = self.path.rstrip("/").rsplit("/", 1)[-1]
            if name in told:
                self.answer("text/plain", len(told[name]), told[name])
            elif name in wheels:
                data = wheels[name]
                spoil = self.server.broken if name.startswith(VICTIM) else None
                length, sent = spoil(data) if spoil else (len(data), data)
                self.answer("application/octet-stream", length, sent)
            else:
                stem = re.sub(r"[-_.]+", "_", name)
                links = "".join(
                    f'<a href="/files/{file}#sha256={hashlib.sha256(data).hexdigest()}" data-core-metadata="true">{file}</a>\n'
                    for file, data in wheels.items()
                    if file.startswith(f"{stem}-1.0")
                )
                page = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
                self.answer("text/html", len(page), page)

        def answer(self, kind, length, data):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.broken = None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", BREAKS)
async def test_a_download_that_breaks_off(index, name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = Settings.load(
        data_dir=str(tmp_path / "data"),
        index_url=f"http://127.0.0.1:{index.server_address[1]}/simple",
        packages=VICTIM,
        proxy="",
    )
    log = open_log(settings)
    engine = LocalEngine(settings, log.blobs)
    try:
        index.broken = BREAKS[name]
        with pytest.raises(BaseBuildError) as caught:
            await engine.prepare()
        assert VICTIM in caught.value.log_tail
        assert [n for n in os.listdir(settings.bases_path) if n.startswith(".building")] == []
        assert engine.bases.current() is None

        index.broken = None
        base = await engine.prepare()
        module = next(engine.bases.path(base.digest).rglob(f"{VICTIM}.py"))
        assert module.stat().st_size == 50012
    finally:
        await engine.close()
        log.close()
