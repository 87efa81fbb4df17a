"""States: replayed when they are missing, listed, read, compared, exported, evicted."""

from __future__ import annotations

import pytest

from dagger_kernel.engines.base import PutFile
from dagger_kernel.errors import SandboxPathError

from .conftest import text


async def test_a_cold_replay_gives_the_same_state_with_progress(bench):
    await bench.cell("import random, os; r = random.random(); u = os.urandom(0)")
    await bench.cell("open('f', 'w').write('content'); xs = [r]")
    _, before = await bench.cell("print(xs, r)")
    await bench.engine.evict()
    assert not await bench.engine.has(bench.chain[-1].key)
    told, repeated = [], []
    key = await bench.engine.ensure(
        bench.chain,
        base=bench.base,
        sandbox_id="contract",
        progress=told.append,
        replayed=lambda step, outcome, frames: repeated.append((step.seq, outcome.status)),
    )
    assert key == bench.chain[-1].key
    assert repeated == [(1, "ok"), (2, "ok"), (3, "ok")]
    assert "replaying 3/3" in told
    _, after = await bench.cell("print(xs, r)")
    assert text(after) == text(before)
    assert await bench.engine.has(key)


async def test_only_what_is_missing_is_repeated(bench):
    for number in range(3):
        await bench.cell(f"x{number} = {number}")
    await bench.engine.evict([bench.chain[-1].key])
    repeated = []
    await bench.engine.ensure(
        bench.chain,
        base=bench.base,
        sandbox_id="contract",
        replayed=lambda step, *_: repeated.append(step.seq),
    )
    assert repeated in ([3], [])  # an engine may keep what it was asked to drop
    _, frames = await bench.cell("print(x0, x1, x2)")
    assert text(frames) == "0 1 2\n"


async def test_answers_are_replayed(bench):
    class Answering:
        frames = []

        def event(self, head, body):
            self.frames.append((head, body))

        async def input(self, prompt, password):
            return "Ada"

    await bench.cell("name = input('name? ')", Answering(), allow_stdin=True)
    await bench.engine.evict()
    _, frames = await bench.cell("print(name)")
    assert text(frames) == "Ada\n"


async def test_uploads_are_one_layer(bench):
    await bench.cell("x = 1")
    blobs = [bench.blobs.put(f"content {n}".encode()) for n in range(3)]
    names = ["attachments/plain.csv", "attachments/with space ü.txt", "attachments/line\nbreak"]
    bench.put(
        "upload",
        files=tuple(PutFile(path=p, blob=b, size=9) for p, b in zip(names, blobs, strict=True)),
    )
    _, frames = await bench.cell("import os; print(sorted(os.listdir('attachments')), x)")
    assert text(frames) == "['line\\nbreak', 'plain.csv', 'with space ü.txt'] 1\n"
    _, frames = await bench.cell("print(open('attachments/plain.csv').read())")
    assert text(frames) == "content 0\n"


async def test_a_layer_can_be_applied_instead_of_repeating(bench):
    await bench.cell(
        "import os; os.makedirs('d'); open('d/f', 'w').write('1'); open('gone', 'w').close()"
    )
    await bench.cell(
        "import os; os.remove('gone'); open('d/f', 'w').write('2'); x = 7; os.symlink('f', 'd/l')"
    )
    archive = await bench.engine.export_layer(bench.chain[-1].key, 1 << 20)
    assert archive is not None
    assert await bench.engine.export_layer(bench.chain[-1].key, 10) is None
    digest = bench.blobs.put(archive)
    bench.chain.pop()
    bench.put("layer", layer=digest)
    _, frames = await bench.cell("import os; print(os.path.exists('gone'), open('d/l').read(), x)")
    assert text(frames) == "False 2 7\n"


async def test_a_step_without_effect_leaves_its_parent_state(bench):
    await bench.cell("x = 1")
    bench.put("layer", layer=None)
    _, frames = await bench.cell("print(x)")
    assert text(frames) == "1\n"


async def test_files_are_listed_read_and_compared(bench):
    await bench.cell(
        "import os; os.makedirs('d/e'); open('d/a', 'w').write('abc'); os.symlink('/etc', 'd/l')"
    )
    old = bench.chain[-1].key
    await bench.cell("open('d/a', 'w').write('changed'); open('d/e/n', 'w').close()")
    new = bench.chain[-1].key
    listed = {info.path: info.kind for info in await bench.engine.files(new, "d", recursive=True)}
    assert listed == {"d/a": "file", "d/e": "directory", "d/e/n": "file", "d/l": "link"}
    assert b"".join([c async for c in bench.engine.read(new, "d/a", offset=2, length=3)]) == b"ang"
    assert b"".join([c async for c in bench.engine.read(old, "d/a")]) == b"abc"
    assert await bench.engine.diff(old, new) == {"d/a": "changed", "d/e/n": "new"}


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "d/../../x", "l/passwd", "l", "d", "p", "nul\0"]
)
async def test_paths_that_leave_the_sandbox_are_refused(bench, path):
    await bench.cell("import os; os.mkdir('d'); os.symlink('/etc', 'l'); os.mkfifo('p')")
    with pytest.raises((SandboxPathError, FileNotFoundError)):
        async for _ in bench.engine.read(bench.chain[-1].key, path):
            pass


async def test_a_missing_file_or_state_is_an_error(bench):
    await bench.cell("x = 1")
    with pytest.raises(FileNotFoundError):
        async for _ in bench.engine.read(bench.chain[-1].key, "nothing"):
            pass
    with pytest.raises(KeyError):
        await bench.engine.files("0" * 64, "")


async def test_long_chains_work(bench):
    count = 40
    for number in range(count):
        await bench.cell(f"open('f{number}', 'w').write('{number}'); n = {number}")
    _, frames = await bench.cell("import glob; print(len(glob.glob('f*')), n, open('f7').read())")
    assert text(frames) == f"{count} {count - 1} 7\n"


async def test_it_describes_itself(bench):
    report = await bench.engine.describe()
    assert report["available"] is True
    assert report["engine"] == bench.engine.name
    assert report["reasons"] == []


async def test_uploads_that_follow_each_other_are_put_in_at_once(bench):
    await bench.cell("x = 1")

    def upload(name, data):
        blob = bench.blobs.put(data)
        bench.put("upload", files=(PutFile(path=name, blob=blob, size=len(data)),))

    for number in range(12):
        upload(f"attachments/{number}", b"%d" % number)
    upload("attachments/0", b"later")
    between = bench.chain[5].key
    outcome, handler = await bench.cell(
        "import os; print(len(os.listdir('attachments')), open('attachments/0').read())"
    )
    assert text(handler) == "12 later\n"
    assert outcome.status == "ok"
    assert not await bench.engine.has(between)
    # A state between them can be asked for, and a replay after it finds what was made.
    await bench.engine.ensure(bench.chain[:6], base=bench.base, sandbox_id="contract")
    assert len(await bench.engine.files(between, "attachments")) == 5
    progress = []
    await bench.engine.ensure(
        bench.chain, base=bench.base, sandbox_id="contract", progress=progress.append
    )
    assert progress == []
