from __future__ import annotations

import json
import re

import jsonschema
import pytest

from dagger_kernel.log import SandboxLock
from dagger_kernel.server.handlers import HANDLERS
from dagger_kernel.server.openapi import PATHS, document
from dagger_kernel.steps import FileChange, Kind, Status

from .conftest import RIGHTS, multipart

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100

READS = [
    "/sandboxes",
    "/sandboxes?notebook=analysis.ipynb",
    "/sandboxes/{id}",
    "/sandboxes/{id}/steps",
    "/sandboxes/{id}/steps/1",
    "/sandboxes/{id}/inherited",
    "/sandboxes/{id}/cached",
    "/sandboxes/{id}/artifacts",
    "/sandboxes/{id}/artifacts/1/chart.png",
    "/sandboxes/{id}/archive",
    "/sandboxes/{id}/files",
    "/sandboxes/{id}/files/chart.png",
    "/status",
    "/openapi.json",
]
WRITES = [
    "/sandboxes",
    "/sandboxes/{id}/steps/1/restore",
    "/sandboxes/{id}/uploads",
    "/sandboxes/{id}/restart-as-new",
    "/sandboxes/{id}/reopen",
    "/sandboxes/{id}/rewind",
]
OF_A_SANDBOX = [path for path in READS if "{id}" in path]


def validate(name, value):
    description = document("/")
    jsonschema.validate(value, {"$ref": f"#/components/schemas/{name}", **description})


@pytest.fixture
def sandbox(site):
    identity = site.sandbox()
    site.cell(identity, "plot()", {"chart.png": PNG})
    return identity


# -- who may


@pytest.mark.parametrize("path", READS)
async def test_reading_needs_authentication(site, sandbox, path):
    response = await site.fetch(path.format(id=sandbox), user=None)
    assert response.code == 403
    validate("Error", json.loads(response.body))


@pytest.mark.parametrize("path", WRITES)
async def test_writing_needs_authentication(site, sandbox, path):
    response = await site.fetch(path.format(id=sandbox), user=None, method="POST")
    assert response.code == 403


async def test_every_handler_is_in_these_lists():
    listed = {path.partition("?")[0].replace("{id}", "x" * 8) for path in READS + WRITES}
    for pattern, handler in HANDLERS:
        assert any(re.fullmatch(pattern, "/dagger-kernel/api" + path) for path in listed), handler


@pytest.mark.parametrize("path", READS)
async def test_reading_needs_the_right_to_read(site, sandbox, path):
    RIGHTS["alice"] = {"write", "execute"}
    response = await site.fetch(path.format(id=sandbox))
    assert response.code == 403, response.body


@pytest.mark.parametrize("path", WRITES)
async def test_writing_needs_the_right_to_execute(site, sandbox, path):
    RIGHTS["alice"] = {"read", "write"}
    upload = multipart([("a.txt", b"a")]) if path.endswith("uploads") else {"method": "POST"}
    response = await site.fetch(path.format(id=sandbox), **upload)
    assert response.code == 403, response.body


@pytest.mark.parametrize("path", [*OF_A_SANDBOX, "/sandboxes/{id}/archive?file=1/chart.png"])
async def test_other_peoples_sandboxes_do_not_exist(site, sandbox, path):
    theirs = await site.fetch(path.format(id=sandbox), user="bob")
    absent = await site.fetch(path.format(id="0" * 32), user="bob")
    assert theirs.code == absent.code == 404
    assert theirs.body.replace(sandbox.encode(), b"ID") == absent.body.replace(b"0" * 32, b"ID")


@pytest.mark.parametrize("path", [path for path in WRITES if "{id}" in path])
async def test_other_peoples_sandboxes_cannot_be_changed(site, sandbox, path):
    options = {"method": "POST", "body": b'{"step": 1}'}
    if path.endswith("uploads"):
        options = multipart([("a.txt", b"a")])
    response = await site.fetch(path.format(id=sandbox), user="bob", **options)
    assert response.code == 404
    assert len(site.log.steps(sandbox)) == 1
    assert len(site.log.sandboxes()) == 1


async def test_two_users_see_their_own(site, sandbox):
    theirs = site.sandbox(owner="bob")
    assert [s["id"] for s in (await site.json("/sandboxes"))["sandboxes"]] == [sandbox]
    found = await site.json("/sandboxes", user="bob")
    assert [s["id"] for s in found["sandboxes"]] == [theirs]


async def test_a_step_of_somebody_else_is_not_reached_through_ones_own_sandbox(site, sandbox):
    theirs = site.cell(site.sandbox(owner="bob"), "secret()", {"secret.txt": b"s3cret"})
    for path in (
        f"/sandboxes/{sandbox}/steps/{theirs.id}",
        f"/sandboxes/{sandbox}/artifacts/{theirs.id}/secret.txt",
        f"/sandboxes/{sandbox}/archive?file={theirs.id}/secret.txt",
        f"/sandboxes/{sandbox}/files/secret.txt?step={theirs.id}",
    ):
        response = await site.fetch(path)
        assert response.code == 404, path
        assert b"s3cret" not in response.body


@pytest.mark.parametrize("prefix", [6, 16, 31])
async def test_an_address_is_the_whole_id(site, sandbox, prefix):
    assert (await site.fetch(f"/sandboxes/{sandbox[:prefix]}")).code == 404


async def test_a_browser_needs_an_xsrf_token_to_write(site, sandbox):
    body = multipart([("a.txt", b"a")])
    cookies = {"Cookie": "who=alice"}
    body["headers"] |= cookies
    refused = await site.fetch(f"/sandboxes/{sandbox}/uploads", user=None, **body)
    assert refused.code == 403
    assert len(site.log.steps(sandbox)) == 1
    body["headers"]["Cookie"] = "who=alice; _xsrf=abc"
    body["headers"]["X-XSRFToken"] = "abc"
    accepted = await site.fetch(f"/sandboxes/{sandbox}/uploads", user=None, **body)
    assert accepted.code == 201, accepted.body


async def test_another_origin_is_refused(site, sandbox):
    for method in ("GET", "POST"):
        response = await site.fetch(
            f"/sandboxes/{sandbox}/restart-as-new" if method == "POST" else "/sandboxes",
            user=None,
            method=method,
            headers={
                "Cookie": "who=alice; _xsrf=a",
                "X-XSRFToken": "a",
                "Origin": "http://evil.test",
            },
        )
        assert response.code in (403, 404)


# -- lists


async def test_shows_sandboxes_and_steps_as_described(site, sandbox):
    site.cell(sandbox, "\n  boom()\n", status=Status.ERROR, usage={"wall_seconds": 0.5})
    site.cell(sandbox, "endless()", unfinished=True)
    validate("Sandboxes", await site.json("/sandboxes"))
    one = await site.json(f"/sandboxes/{sandbox}")
    validate("Sandbox", one)
    assert one["steps"] == 3
    assert one["name"] == "analysis.ipynb"
    steps = await site.json(f"/sandboxes/{sandbox}/steps")
    validate("Steps", steps)
    assert [step["status"] for step in steps["steps"]] == ["ok", "error", "pending"]
    assert steps["steps"][1]["title"] == "boom()"
    assert "outputs" not in steps["steps"][0]


async def test_pages_through_steps(site, sandbox):
    for number in range(5):
        site.cell(sandbox, f"{number}")
    first = await site.json(f"/sandboxes/{sandbox}/steps?limit=4")
    assert [step["seq"] for step in first["steps"]] == [1, 2, 3, 4]
    assert first["more"]
    rest = await site.json(f"/sandboxes/{sandbox}/steps?after=4")
    assert [step["seq"] for step in rest["steps"]] == [5, 6]
    assert not rest["more"]


async def test_shows_a_step_by_number_and_by_id(site, sandbox):
    outputs = [{"output_type": "stream", "name": "stdout", "text": "nul \0 and \udcff\n"}]
    step = site.cell(sandbox, "print('ü')\n", outputs=outputs, state_report={"lost": []})
    by_number = await site.json(f"/sandboxes/{sandbox}/steps/2")
    by_id = await site.json(f"/sandboxes/{sandbox}/steps/{step.id}")
    assert by_number == by_id
    validate("StepDetail", by_number)
    assert by_number["source"] == "print('ü')\n"
    assert by_number["outputs"] == outputs
    assert by_number["cell_id"] == "cell-a"


@pytest.mark.parametrize("seq", ["2", "0", "999999999999", "f" * 32])
async def test_a_step_that_is_not_there(site, sandbox, seq):
    validate("Error", await site.json(f"/sandboxes/{sandbox}/steps/{seq}", status=404))


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "limit=0", "after=1e3", "after=" + "9" * 99]
)
async def test_numbers_are_checked(site, sandbox, query):
    validate("Error", await site.json(f"/sandboxes/{sandbox}/steps?{query}", status=400))


async def test_a_fork_tells_the_steps_it_continues(site, sandbox):
    site.cell(sandbox, "x = 1")
    opened = await site.json(
        f"/sandboxes/{sandbox}/reopen", method="POST", body=b'{"step": 1}', status=201
    )
    validate("Sandbox", opened)
    assert (await site.json(f"/sandboxes/{opened['id']}/steps"))["steps"] == []
    inherited = await site.json(f"/sandboxes/{opened['id']}/inherited")
    assert [(s["sandbox"], s["seq"]) for s in inherited["steps"]] == [(sandbox, 1)]
    assert (await site.json(f"/sandboxes/{sandbox}/inherited"))["steps"] == []
    listing = await site.json(f"/sandboxes/{opened['id']}/files")
    assert [entry["path"] for entry in listing["entries"]] == ["chart.png"]
    first = inherited["steps"][0]["id"]
    archive = await site.fetch(f"/sandboxes/{opened['id']}/archive?file={first}/chart.png")
    assert archive.code == 200
    assert archive.body[:2] == b"PK"


# -- changes


async def test_restart_as_new_keeps_the_old_one(site, sandbox):
    fresh = await site.json(f"/sandboxes/{sandbox}/restart-as-new", method="POST", status=201)
    validate("Sandbox", fresh)
    assert fresh["steps"] == 0
    assert (await site.json(f"/sandboxes/{sandbox}"))["state"] == "ended"
    path = str(site.root / "analysis.ipynb")
    assert site.log.latest_sandbox("alice", path).id == fresh["id"]
    opened = await site.json(f"/sandboxes/{sandbox}/reopen", method="POST", status=201)
    assert site.log.latest_sandbox("alice", path).id == opened["id"]
    assert site.log.tip(opened["id"]).source == "plot()"


async def test_begins_a_sandbox_once(site):
    body = b'{"notebook": "deep/new.ipynb"}'
    (site.root / "deep").mkdir()
    first = await site.json("/sandboxes", method="POST", body=body, status=201)
    again = await site.json("/sandboxes", method="POST", body=body, status=201)
    assert first == again
    assert first["notebook"] == str(site.root / "deep" / "new.ipynb")
    found = await site.json("/sandboxes?notebook=deep/new.ipynb")
    assert [item["id"] for item in found["sandboxes"]] == [first["id"]]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"notebook": 3}', b"{", b'{"notebook": "a\\u0000"}']
)
async def test_begins_nothing_for_no_notebook(site, body):
    response = await site.fetch("/sandboxes", method="POST", body=body)
    assert response.code == 400
    assert site.log.sandboxes() == []


async def test_rewinds(site, sandbox):
    site.cell(sandbox, "x = 2", {"later.csv": b"a"})
    path = f"/sandboxes/{sandbox}/rewind"
    step = await site.json(path, method="POST", body=b'{"step": 1}', status=201)
    validate("Step", step)
    assert step["kind"] == "rewind"
    listing = await site.json(f"/sandboxes/{sandbox}/files")
    assert [entry["path"] for entry in listing["entries"]] == ["chart.png"]
    await site.json(path, method="POST", body=b'{"step": 77}', status=404)
    await site.json(path, method="POST", body=b'{"step": true}', status=400)


async def test_a_running_cell_is_not_disturbed(site, sandbox, monkeypatch):
    monkeypatch.setattr("dagger_kernel.server.service.LOCK_SECONDS", 0.1)
    lock = SandboxLock(site.settings, sandbox, holder="a cell")
    lock.acquire()
    try:
        error = await site.json(
            f"/sandboxes/{sandbox}/uploads", status=409, **multipart([("a.csv", b"1")])
        )
        validate("Error", error)
        assert "a cell" in error["message"]
    finally:
        lock.release()
    assert len(site.log.steps(sandbox)) == 1


# -- files of a step, from the log


async def test_lists_files_that_the_log_knows(site, sandbox):
    site.cell(sandbox, "b", {"out/b.csv": b"bb", "out/deep/c.csv": b"ccc"})
    gone = FileChange(path="chart.png", kind="deleted")
    big = FileChange(path="big.bin", kind="new", size=1 << 40, skipped="larger than 16 MiB")
    site.cell(sandbox, "c", changes=[gone, big])
    now = await site.json(f"/sandboxes/{sandbox}/files")
    validate("Listing", now)
    assert not now["complete"]
    assert [(e["path"], e["kind"]) for e in now["entries"]] == [
        ("big.bin", "file"),
        ("out", "directory"),
    ]
    before = await site.json(f"/sandboxes/{sandbox}/files?step=2")
    assert [e["path"] for e in before["entries"]] == ["chart.png", "out"]
    inner = await site.json(f"/sandboxes/{sandbox}/files/out")
    assert [e["path"] for e in inner["entries"]] == ["out/b.csv", "out/deep"]
    response = await site.fetch(f"/sandboxes/{sandbox}/files/out/b.csv")
    assert response.body == b"bb"
    unknown = await site.json(f"/sandboxes/{sandbox}/files/big.bin", status=409)
    assert "Restore" in unknown["remedy"]
    await site.json(f"/sandboxes/{sandbox}/files/chart.png", status=404)
    await site.json(f"/sandboxes/{sandbox}/files/none", status=404)


async def test_an_empty_sandbox_has_no_files(site):
    listing = await site.json(f"/sandboxes/{site.sandbox()}/files")
    assert listing["entries"] == []
    assert listing["complete"]


async def test_lists_artifacts_with_their_steps(site, sandbox):
    site.cell(sandbox, "again()", {"chart.png": PNG + b"2"})
    found = await site.json(f"/sandboxes/{sandbox}/artifacts")
    validate("Artifacts", found)
    assert [(item["path"], item["step"]) for item in found["artifacts"]] == [
        ("chart.png", 1),
        ("chart.png", 2),
    ]


# -- the description


async def test_the_description_is_served_and_names_every_handler(site):
    served = await site.json("/openapi.json")
    assert served["openapi"].startswith("3.1")
    assert served["servers"][0]["url"].endswith("/dagger-kernel/api")
    jsonschema.Draft202012Validator.check_schema({"$defs": served["components"]["schemas"]})
    methods = {}
    for pattern, handler in HANDLERS:
        methods[pattern] = {name for name in ("get", "head", "post") if name in handler.__dict__}
    described = {path: set(operations) for path, operations in PATHS.items()}
    for path, verbs in described.items():
        example = path
        for name, value in (("{id}", "abc"), ("{step}", "1"), ("{path}", "a/b")):
            example = example.replace(name, value)
        matching = [p for p in methods if re.fullmatch(p, "/dagger-kernel/api" + example)]
        assert matching, path
        assert methods[matching[0]] == verbs, path
    assert len(methods) == len(described) - 1  # files: one pattern, two paths


async def test_status_tells_engine_and_limits(site):
    status = await site.json("/status")
    validate("Status", status)
    assert status["owner"] == "alice"
    assert status["limits"]["file_bytes"] == site.settings.file_bytes


async def test_a_log_that_cannot_be_used_is_told(site, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_DATABASE_URL", "mysql://nobody@nowhere/x")
    validate("Error", await site.json("/sandboxes", status=400))
    monkeypatch.delenv("DAGGER_KERNEL_DATABASE_URL")
    await site.json("/sandboxes")


async def test_uploads_are_known_files(site, sandbox):
    uploaded = await site.json(
        f"/sandboxes/{sandbox}/uploads", status=201, **multipart([("q 3.csv", b"a,b\n")])
    )
    validate("Uploaded", uploaded)
    assert uploaded["step"]["kind"] == str(Kind.UPLOAD)
    assert uploaded["paths"] == ["attachments/q 3.csv"]
    response = await site.fetch(f"/sandboxes/{sandbox}/artifacts/2/attachments/q%203.csv")
    assert response.body == b"a,b\n"
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"


async def test_finds_the_sandbox_of_a_renamed_notebook_while_its_kernel_runs(site, monkeypatch):
    mine = site.sandbox(notebook=str(site.root / "before.ipynb"))

    class Kernel:
        _launch_args = {"env": {"JPY_SESSION_NAME": str(site.root / "before.ipynb")}}

    async def get_session(**query):
        assert query == {"path": "after.ipynb"}
        return {"kernel": {"id": "k"}}

    monkeypatch.setattr(site.app.session_manager, "get_session", get_session)
    monkeypatch.setattr(site.app.kernel_manager, "get_kernel", lambda identity: Kernel())
    found = await site.json("/sandboxes?notebook=after.ipynb")
    assert [item["id"] for item in found["sandboxes"]] == [mine]


class TestOwners:
    def ask(self, site, who, provider, monkeypatch, mode="auto", hub=""):
        from jupyter_server.auth import User

        monkeypatch.setenv("JUPYTERHUB_USER", hub)
        monkeypatch.setattr(site.extension, "owner_from", mode)
        return site.extension.owner_of(User(username=who), provider)

    async def test_a_token_is_the_account(self, site, monkeypatch):
        from jupyter_server.auth.identity import PasswordIdentityProvider

        monkeypatch.setattr("getpass.getuser", lambda: "account")
        token = PasswordIdentityProvider()
        assert self.ask(site, "random", token, monkeypatch) == "account"
        assert self.ask(site, "random", token, monkeypatch, "user") == "random"

    async def test_people_are_themselves(self, site, monkeypatch):
        people = site.app.identity_provider
        monkeypatch.setattr("getpass.getuser", lambda: "jovyan")
        assert self.ask(site, "alice", people, monkeypatch) == "alice"
        assert self.ask(site, "alice", people, monkeypatch, "server") == "jovyan"
        assert self.ask(site, "alice", people, monkeypatch, hub="alice") == "jovyan"
        assert self.ask(site, "bob", people, monkeypatch, hub="alice") == "bob"
