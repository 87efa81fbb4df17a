"""The right to execute in sandboxes reaches kernels: two users on one real Jupyter Server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from .conftest import RIGHTS

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def environment(environment, tmp_path, monkeypatch):
    folder = tmp_path / "specs/kernels"
    folder.mkdir(parents=True)
    (folder / "dagger").symlink_to(REPO / "kernelspec/python")
    renamed = folder / "innocent"
    renamed.mkdir()
    (renamed / "kernel.json").write_text((REPO / "kernelspec/python/kernel.json").read_text())
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "specs"))
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    return environment


@pytest.fixture
def rights(monkeypatch):
    """Let bob do everything but execute in sandboxes."""
    from . import conftest

    def is_authorized(self, handler, user, action, resource):
        return not (user.username == "bob" and resource == "dagger_kernel" and action == "execute")

    monkeypatch.setattr(conftest.Rights, "is_authorized", is_authorized)
    RIGHTS.clear()


@pytest.fixture
def ask(site, rights):
    async def request(method, place, user="alice", **body):
        options = {"body": json.dumps(body)} if method in ("POST", "PATCH") else {}
        wanted = HTTPRequest(
            f"http://127.0.0.1:{site.port}/api{place}", method=method,
            headers={"Authorization": f"token {user}"}, **options,
        )  # fmt: skip
        answer = await AsyncHTTPClient().fetch(wanted, raise_error=False)
        return answer.code, json.loads(answer.body) if answer.body else None

    return request


async def channels(site, kernel_id, user):
    url = f"ws://127.0.0.1:{site.port}/api/kernels/{kernel_id}/channels?session_id=x"
    return await websocket_connect(HTTPRequest(url, headers={"Authorization": f"token {user}"}))


@pytest.mark.parametrize("name", ["dagger", "innocent"])
async def test_only_who_may_execute_starts_a_kernel(site, ask, name):
    assert (await ask("POST", "/kernels", "bob", name=name))[0] == 403
    body = {"path": "a.ipynb", "type": "notebook", "name": "a", "kernel": {"name": name}}
    assert (await ask("POST", "/sessions", "bob", **body))[0] == 403
    assert (await ask("GET", "/kernels"))[1] == []
    code, kernel = await ask("POST", "/kernels", "alice", name=name)
    assert code == 201
    assert (await ask("DELETE", f"/kernels/{kernel['id']}", "alice"))[0] == 204


async def test_other_kernels_are_nobodys_business(site, ask):
    code, kernel = await ask("POST", "/kernels", "bob", name="python3")
    assert code == 201
    assert (await ask("POST", f"/kernels/{kernel['id']}/interrupt", "bob"))[0] == 204
    assert (await ask("DELETE", f"/kernels/{kernel['id']}", "bob"))[0] == 204
    assert (await ask("POST", "/kernels", "bob", name="no-such-kernel"))[0] in (404, 500, 501)


async def test_only_who_may_execute_drives_or_ends_one(site, ask):
    _, session = await ask(
        "POST", "/sessions", path="a.ipynb", type="notebook", name="a", kernel={"name": "dagger"}
    )
    kernel = session["kernel"]["id"]
    for method, path, body in (
        ("POST", f"/kernels/{kernel}/interrupt", {}),
        ("POST", f"/kernels/{kernel}/restart", {}),
        ("DELETE", f"/kernels/{kernel}", {}),
        ("DELETE", f"/sessions/{session['id']}", {}),
        ("PATCH", f"/sessions/{session['id']}", {"kernel": {"name": "python3"}}),
    ):
        assert (await ask(method, path, "bob", **body))[0] == 403, path
    with pytest.raises(HTTPClientError, match="403"):
        await channels(site, kernel, "bob")
    # A session of his own may not adopt it either.
    body = {"path": "b.ipynb", "type": "notebook", "name": "b", "kernel": {"id": kernel}}
    assert (await ask("POST", "/sessions", "bob", **body))[0] == 403
    assert [each["id"] for each in (await ask("GET", "/kernels", "bob"))[1]] == [kernel]
    assert (await ask("PATCH", f"/sessions/{session['id']}", "bob", name="renamed"))[0] == 200
    socket = await channels(site, kernel, "alice")
    socket.close()
    assert (await ask("DELETE", f"/sessions/{session['id']}", "alice"))[0] == 204


async def test_the_default_kernel_is_asked_about_too(site, ask):
    site.app.kernel_manager.default_kernel_name = "dagger"
    assert (await ask("POST", "/kernels", "bob"))[0] == 403
    body = {"path": "a.ipynb", "type": "notebook", "name": "a"}
    assert (await ask("POST", "/sessions", "bob", **body))[0] == 403


async def test_what_the_configured_authorizer_refuses_stays_refused(site, rights, monkeypatch):
    from . import conftest

    monkeypatch.setattr(conftest.Rights, "is_authorized", lambda *_: False)
    wanted = HTTPRequest(
        f"http://127.0.0.1:{site.port}/api/kernels", headers={"Authorization": "token alice"}
    )
    assert (await AsyncHTTPClient().fetch(wanted, raise_error=False)).code == 403


async def test_it_stands_in_front_once(site):
    from dagger_kernel.server.authorizer import SandboxAuthorizer

    found = site.app.web_app.settings["authorizer"]
    assert isinstance(found, SandboxAuthorizer)
    assert not isinstance(found.inner, SandboxAuthorizer)
