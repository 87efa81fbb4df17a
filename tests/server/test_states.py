"""Files of a state that the real engine holds, and holds again after a replay."""

from __future__ import annotations

import asyncio
import io
import shutil
import zipfile

import pytest

from dagger_kernel.engines.local.room import LocalRoom
from dagger_kernel.sandbox import AsyncSandbox
from dagger_kernel.sandbox.ahead import SETTLE_SECONDS

from ..conftest import borrow_base
from .conftest import multipart


@pytest.fixture
def base(shared_base, environment, tmp_path, monkeypatch):
    monkeypatch.setenv("DAGGER_KERNEL_OWNER", "alice")
    return borrow_base(shared_base, tmp_path / "sandboxes")


async def test_any_file_of_any_step(base, site):
    source = (
        "import os; os.mkdir('sub'); open('sub/.hidden', 'wb').write(bytes(range(200)))\n"
        "os.symlink('/etc/passwd', 'out'); os.mkfifo('pipe'); open('same', 'w').write('1')"
    )
    async with await AsyncSandbox.open() as sandbox:
        first = await sandbox.run(source)
        second = await sandbox.run("open('same', 'w').write('22')")
        assert (first.status, second.status) == ("ok", "ok")
        at = f"/sandboxes/{sandbox.id}"
    listing = await site.json(f"{at}/files?step=1")
    assert listing["complete"]
    kinds = {entry["path"]: entry["kind"] for entry in listing["entries"]}
    assert kinds["sub"] == "directory"
    assert kinds["out"] == "link"
    assert kinds["pipe"] == "other"
    part = await site.fetch(f"{at}/files/sub/.hidden?step=1", headers={"Range": "bytes=10-19"})
    assert (part.code, part.body) == (206, bytes(range(10, 20)))
    assert (await site.fetch(f"{at}/files/same?step=1")).body == b"1"
    assert (await site.fetch(f"{at}/files/same")).body == b"22"
    for path in ("out", "pipe"):
        assert (await site.fetch(f"{at}/files/{path}?step=1")).code == 400

    shutil.rmtree(base / "layers")
    await site.extension.states.close()
    assert not (await site.json(f"{at}/files?step=1"))["complete"]
    assert (await site.json(f"{at}/cached"))["cached"] == []
    await site.json(f"{at}/files/sub/.hidden?step=1", status=404)
    restored = await site.json(f"{at}/steps/1/restore", method="POST")
    assert restored["step"] == 1
    assert (await site.fetch(f"{at}/files/sub/.hidden?step=1")).body == bytes(range(200))
    assert len((await site.json(f"{at}/cached"))["cached"]) == 1


async def test_a_directory_of_any_step_as_an_archive(base, site):
    source = (
        "import os; os.makedirs('out/deep/empty'); open('out/a.csv', 'w').write('1')\n"
        "open('out/deep/ü b.txt', 'w').write('2'); open('out/.hidden', 'w').write('3')\n"
        "os.symlink('/etc/passwd', 'out/link'); os.mkfifo('out/pipe'); open('top.txt', 'w').write('4')\n"
        "os.chmod('out/a.csv', 0o755)"
    )
    async with await AsyncSandbox.open() as sandbox:
        await sandbox.run(source)
        await sandbox.run("open('out/a.csv', 'w').write('changed')")
        at = f"/sandboxes/{sandbox.id}/archive"
    response = await site.fetch(f"{at}?directory=out&step=1")
    assert response.code == 200
    assert 'filename="out.zip"' in response.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(response.body)) as bundle:
        assert bundle.testzip() is None
        names = ["out/a.csv", "out/deep/", "out/deep/empty/", "out/deep/ü b.txt"]
        assert sorted(bundle.namelist()) == names
        assert bundle.read("out/a.csv") == b"1"
        assert bundle.getinfo("out/a.csv").external_attr >> 16 & 0o777 == 0o755
    with zipfile.ZipFile(io.BytesIO((await site.fetch(f"{at}?directory=out/deep")).body)) as bundle:
        assert sorted(bundle.namelist()) == ["deep/empty/", "deep/ü b.txt"]
    with zipfile.ZipFile(io.BytesIO((await site.fetch(f"{at}?directory=")).body)) as bundle:
        assert bundle.read("out/a.csv") == b"changed"
        assert "top.txt" in bundle.namelist()
        assert not [name for name in bundle.namelist() if ".venv" in name]
    for path, code in (("nothing", 404), ("out/a.csv", 404), ("out/link", 404), ("../up", 400),
                       ("/etc", 400), ("out/%00", 404), ("out&step=99", 404), ("out&step=x", 400)):  # fmt: skip
        assert (await site.fetch(f"{at}?directory={path}")).code == code, path
    assert (await site.fetch(f"{at}?directory=out", user="bob")).code == 404
    assert (await site.fetch(f"{at}?directory=out", user=None)).code == 403


async def test_a_directory_needs_its_state_and_a_size(base, site, monkeypatch):
    async with await AsyncSandbox.open() as sandbox:
        await sandbox.run(
            "import os; os.mkdir('out'); [open(f'out/{n}', 'w').close() for n in range(9)]"
        )
        at = f"/sandboxes/{sandbox.id}/archive"
    with monkeypatch.context() as patch:
        patch.setattr("dagger_kernel.server.archive.MOST_FILES", 8)
        assert (await site.fetch(f"{at}?directory=out")).code == 413
    shutil.rmtree(base / "layers")
    await site.extension.states.close()
    refused = await site.json(f"{at}?directory=out", status=409)
    assert "Restore the step" in refused["remedy"]
    await site.json(f"/sandboxes/{sandbox.id}/steps/1/restore", method="POST")
    assert (await site.fetch(f"{at}?directory=out")).code == 200
    empty = site.sandbox()
    assert (await site.fetch(f"/sandboxes/{empty}/archive?directory=")).code == 404


@pytest.mark.parametrize("late", [0.0, 1.5])
async def test_uploads_are_put_in_before_the_next_cell_asks(base, site, monkeypatch, late):
    ends = LocalRoom._wait_for_exit

    async def ends_late(room):
        await asyncio.sleep(late)
        await ends(room)

    monkeypatch.setattr(LocalRoom, "_wait_for_exit", ends_late)
    async with await AsyncSandbox.open() as sandbox:
        await sandbox.run("x = 1")
        at = f"/sandboxes/{sandbox.id}"
        for number in range(5):
            last = await site.json(
                f"{at}/uploads", **multipart([(f"{number}.csv", b"%d" % number)]), status=201
            )
        async with asyncio.timeout(20):
            while not (await site.json(f"{at}/files?step={last['step']['seq']}"))["complete"]:
                await asyncio.sleep(0.05)
        listed = await sandbox.run("import os; print(len(os.listdir('attachments')), x)")
        assert listed.logs.stdout == ["5 1\n"]


async def test_uploads_never_repeat_cells_by_themselves(base, site):
    async with await AsyncSandbox.open() as sandbox:
        await sandbox.run("x = 1")
        at = f"/sandboxes/{sandbox.id}"
    shutil.rmtree(base / "layers")
    await site.extension.states.close()
    done = await site.json(f"{at}/uploads", **multipart([("a.csv", b"1")]), status=201)
    await asyncio.sleep(2 * SETTLE_SECONDS)
    await site.extension.states.incoming.close()
    assert not (await site.json(f"{at}/files?step={done['step']['seq']}"))["complete"]
