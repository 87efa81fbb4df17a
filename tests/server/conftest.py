"""A Jupyter Server with the extension, in the test's event loop, and a log to look at.

Not pytest-jupyter's server: its event loop and pytest-asyncio's do not go together.
"""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyter_server.auth import Authorizer, IdentityProvider, User
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from traitlets.config import Config

from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import FileChange, Kind, Result, Status, Step, child_key

API = "/dagger-kernel/api"
FILE_BYTES = 64 * 1024
RIGHTS: dict[str, set[str]] = {}


class People(IdentityProvider):
    """Knows people: by a token, or by a cookie as a browser has it."""

    def get_user(self, handler):
        header = handler.request.headers.get("Authorization", "")
        if header.startswith("token "):
            handler._token_authenticated = True
            name = header.removeprefix("token ")
        else:
            name = handler.get_cookie("who", "")
        return User(username=name) if name in ("alice", "bob") else None

    def is_token_authenticated(self, handler):
        return getattr(handler, "_token_authenticated", False)


class Rights(Authorizer):
    """Everything, unless a test took rights away."""

    def is_authorized(self, handler, user, action, resource):
        assert resource in ("dagger_kernel", "api", "server", "contents", "kernels", "sessions"), (
            resource
        )
        return action in RIGHTS.get(user.username, {"read", "write", "execute"})


@dataclass
class Site:
    """The server as a client sees it, and the log behind it."""

    app: ServerApp
    port: int
    log: Any
    settings: Settings
    root: Any
    client: AsyncHTTPClient = field(default_factory=AsyncHTTPClient)

    @property
    def extension(self):
        return self.app.extension_manager.extension_apps["dagger_kernel.server"].copy().pop()

    async def fetch(
        self, path: str, *, user: str | None = "alice", method: str = "GET", **options: Any
    ) -> HTTPResponse:
        headers = dict(options.pop("headers", {}))
        if user is not None:
            headers.setdefault("Authorization", f"token {user}")
        if method == "POST":
            options.setdefault("body", b"")
        request = HTTPRequest(
            f"http://127.0.0.1:{self.port}{API}{path}",
            method=method,
            headers=headers,
            follow_redirects=False,
            decompress_response=False,
            **options,
        )
        return await self.client.fetch(request, raise_error=False)

    async def json(self, path: str, *, status: int = 200, **options: Any) -> Any:
        response = await self.fetch(path, **options)
        assert response.code == status, (response.code, response.body)
        return json.loads(response.body)

    def sandbox(self, owner: str = "alice", notebook: str | None = None) -> str:
        name = str(self.root / "analysis.ipynb") if notebook is None else notebook
        return self.log.create_sandbox(owner, name).id

    def cell(
        self,
        sandbox_id: str,
        source: str = "1 + 1",
        files: dict[str, bytes] | None = None,
        **fields: Any,
    ) -> Step:
        changes = [
            FileChange(
                path=path,
                kind="new",
                size=len(data),
                blob=self.log.blobs.put(data),
                mime=_mime(path),
            )
            for path, data in (files or {}).items()
        ]
        changes += fields.pop("changes", [])
        step = self.append(sandbox_id, source=source, payload={"cell_id": "cell-a"})
        if fields.pop("unfinished", False):
            return step
        fields.setdefault("status", Status.OK)
        self.log.finish(Result(step_id=step.id, files=changes, **fields))
        return step

    def append(self, sandbox_id: str, **fields: Any) -> Step:
        parent = self.log.tip(sandbox_id)
        fields.setdefault("kind", Kind.CELL)
        fields.setdefault("parent_id", parent.id if parent else None)
        nonce = uuid.uuid4().hex
        return self.log.append(
            Step(
                id=uuid.uuid4().hex,
                sandbox_id=sandbox_id,
                seq=0,
                nonce=nonce,
                base_digest="b" * 64,
                runner_digest="r" * 64,
                engine="local",
                key=child_key(parent.key if parent else "0" * 64, nonce),
                **fields,
            )
        )


def _mime(path: str) -> str:
    kinds = {"png": "image/png", "html": "text/html", "svg": "image/svg+xml", "csv": "text/csv"}
    return kinds.get(path.rpartition(".")[2], "application/octet-stream")


@pytest.fixture
def environment(tmp_path, monkeypatch):
    for name in ("config", "data", "runtime"):
        monkeypatch.setenv(f"JUPYTER_{name.upper()}_DIR", str(tmp_path / "jupyter" / name))
    for paths in ("ENV_CONFIG_PATH", "SYSTEM_CONFIG_PATH"):
        monkeypatch.setattr(f"jupyter_core.paths.{paths}", [])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DAGGER_KERNEL_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("DAGGER_KERNEL_DATA_DIR", str(tmp_path / "sandboxes"))
    monkeypatch.setenv("DAGGER_KERNEL_FILE_BYTES", str(FILE_BYTES))
    monkeypatch.setenv("DAGGER_KERNEL_ENGINE", "local")
    root = tmp_path / "notebooks"
    root.mkdir()
    return root


@pytest.fixture
def config():
    """Traits of the server; tests change it before they ask for `site`."""
    return Config()


@pytest.fixture
async def site(environment, config):
    RIGHTS.clear()
    config.ServerApp.jpserver_extensions = {"dagger_kernel.server": True}
    config.ServerApp.setdefault("identity_provider_class", People)
    config.ServerApp.setdefault("authorizer_class", Rights)
    config.ServerApp.allow_unauthenticated_access = False
    config.NotebookNotary.db_file = ":memory:"
    ServerApp.clear_instance()
    app = ServerApp.instance(
        config=config, open_browser=False, root_dir=str(environment), allow_root=True
    )
    app.init_signal = lambda: None
    app.initialize(argv=[], new_httpserver=False)
    app.log.handlers = []
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    socket, port = bind_unused_port()
    server = HTTPServer(
        app.web_app, max_body_size=app.max_body_size, max_buffer_size=app.max_buffer_size
    )
    server.add_socket(socket)
    settings = Settings.load()
    log = open_log(settings)
    yield Site(app=app, port=port, log=log, settings=settings, root=environment)
    server.stop()
    await server.close_all_connections()
    await app._cleanup()
    ServerApp.clear_instance()
    log.close()


def multipart(files: list[tuple[str, bytes]], boundary: str = "xyz") -> dict[str, Any]:
    """Return body and headers as a browser sends them."""
    body = b""
    for name, data in files:
        shown = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{shown}"\r\n'
        )
        body += head.encode("utf-8", "surrogateescape")
        body += b"Content-Type: application/octet-stream\r\n\r\n" + data + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return {
        "body": body,
        "headers": {"Content-Type": f"multipart/form-data; boundary={boundary}"},
        "method": "POST",
    }
