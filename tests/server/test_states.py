"""Files of a state that the real engine holds, and holds again after a replay."""

from __future__ import annotations

import asyncio
import shutil

import pytest

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


async def test_uploads_are_put_in_before_the_next_cell_asks(base, site):
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
