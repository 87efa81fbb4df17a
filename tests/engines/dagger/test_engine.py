"""What only a real Dagger engine can show: caching across kernels, lost sessions, a killed engine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

import pytest

from dagger_kernel.engines.base import PutFile
from dagger_kernel.engines.dagger import DaggerEngine, chain
from dagger_kernel.engines.replay import Recorder
from dagger_kernel.errors import BlobError, DaggerKernelError, RoomLostError
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import fresh_nonce
from tests.contract.conftest import Bench, text

pytestmark = pytest.mark.dagger

KILL = os.environ.get("TEST_DAGGER_ENGINE_KILL")
START = os.environ.get("TEST_DAGGER_ENGINE_START")
killable = pytest.mark.skipif(
    not (KILL and START),
    reason="set TEST_DAGGER_ENGINE_KILL and _START to commands that kill and start the engine",
)


@pytest.fixture
def log(tmp_path):
    log = open_log(Settings.load(data_dir=str(tmp_path / "data")))
    yield log
    log.close()


@pytest.fixture
async def kernel(tmp_path, log):
    """Start engines on one data directory, as kernels do; each with the chain so far."""
    engines = []

    async def start(earlier=None):
        settings = Settings.load(data_dir=str(tmp_path / "data"))
        engine = DaggerEngine(settings, log.blobs)
        engines.append(engine)
        bench = Bench(engine, log.blobs, settings)
        if earlier is None:
            return await bench.start()
        bench.base = await engine.prepare(digest=earlier.base.digest)
        assert bench.base == earlier.base
        bench.chain = list(earlier.chain)
        return bench

    yield start
    for engine in engines:
        await engine.close()


class Listener(Recorder):
    """Knows when the cell has printed something."""

    def __init__(self):
        super().__init__([])
        self._printed = asyncio.Event()

    def event(self, head, body):
        super().event(head, body)
        if head["type"] == "stream":
            self._printed.set()

    async def began(self):
        await asyncio.wait_for(self._printed.wait(), 60)


async def repeated(bench):
    """Return the steps that had to be repeated to make the chain's state."""
    seen = []
    await bench.engine.ensure(
        bench.chain,
        base=bench.base,
        sandbox_id="contract",
        replayed=lambda step, *_: seen.append(step.seq),
    )
    return seen


async def test_another_kernel_finds_every_kind_of_step_cached(kernel):
    one = await kernel()
    await one.cell("x = 1")
    blob = one.blobs.put(b"content")
    one.put("upload", files=(PutFile(path="attachments/a", blob=blob, size=7),))
    await one.cell("y = open('attachments/a').read()")
    room = await one.room()
    listener = Listener()
    request = one.request("z = 2\nprint('on', flush=True)\nimport time\ntime.sleep(600)")
    running = asyncio.create_task(room.run(request, listener))
    await listener.began()
    await room.interrupt()
    assert (await asyncio.wait_for(running, 60)).status == "interrupted"
    await one.add(room, request, await running)
    interrupted = one.chain.pop()
    archive = await one.engine.export_layer(interrupted.key, 1 << 20)
    one.put("layer", layer=one.blobs.put(archive))
    await one.cell("print(x, y, z)")
    two = await kernel(one)
    assert await repeated(two) == []
    _, frames = await two.cell("print(x, y, z)")
    assert text(frames) == "1 content 2\n"


async def test_two_kernels_on_one_sandbox_do_not_meet(kernel):
    one = await kernel()
    await one.cell("x = 1")
    two = await kernel(one)
    rooms = [await one.room(), await two.room(), await one.room()]
    for number, (bench, room) in enumerate(zip((one, two, one), rooms, strict=True)):
        listener = Recorder([])
        outcome = await room.run(bench.request(f"x += {number}; print(x)"), listener)
        assert (outcome.status, text(listener)) == ("ok", f"{1 + number}\n")
    for room in rooms:
        await room.discard()


async def test_a_chain_longer_than_a_flattening_keeps_everything(kernel, monkeypatch):
    monkeypatch.setattr(chain, "FLATTEN_EVERY", 3)
    one = await kernel()
    await one.cell(
        "import os; os.makedirs('d/e'); open('d/e/f', 'w').write('1'); os.symlink('f', 'd/e/l')"
    )
    await one.cell(
        "os.chmod('d/e/f', 0o400); open('/tmp/t', 'w').write('t'); open('gone', 'w').close()"
    )
    await one.cell(
        "os.remove('gone'); os.mkfifo('p'); os.link('d/e/f', 'hard'); open('s', 'w').close()"
    )
    for _ in range(4):
        await one.cell("n = globals().get('n', 0) + 1")
    look = (
        "import stat; print(n, open('d/e/l').read(), oct(os.stat('d/e/f').st_mode), os.path.exists('gone'), "
        "os.stat('hard').st_ino == os.stat('d/e/f').st_ino, open('/tmp/t').read(), os.getuid() == os.stat('s').st_uid)"
    )
    _, frames = await one.cell(look)
    assert text(frames) == "4 1 0o100400 False True t True\n"
    two = await kernel(one)
    assert await repeated(two) == []
    await two.engine.evict()
    assert await repeated(two) == [step.seq for step in two.chain]
    _, frames = await two.cell(look)
    assert text(frames) == "4 1 0o100400 False True t True\n"


async def test_a_nonce_that_ran_before_runs_again_for_its_output(kernel):
    one = await kernel()
    nonce = fresh_nonce()
    for _ in range(2):
        room = await one.room(nonce)
        listener = Recorder([])
        outcome = await room.run(one.request("print('here')"), listener)
        assert (outcome.status, text(listener)) == ("ok", "here\n")
        await room.commit("k" * 64)
    assert await one.engine.has("k" * 64)


async def test_cells_see_nothing_of_the_engine(kernel):
    one = await kernel()
    _, frames = await one.cell(
        "import os; print([n for n in os.environ if 'OTEL' in n or 'TRACE' in n or 'DAGGER' in n or "
        "n == 'BAGGAGE'], os.environ['PYTHONHASHSEED'], os.environ['HOME'], os.getcwd())"
    )
    assert text(frames) == "[] 0 /home/sandbox /home/sandbox\n"


async def test_no_room_compiles_the_standard_library_again(kernel):
    one = await kernel()
    _, frames = await one.cell(
        "import json, os, asyncio, email.message as m; "
        "print([os.path.exists(each.__cached__) for each in (json, asyncio, m)])"
    )
    assert text(frames) == "[True, True, True]\n"


async def test_a_large_file_is_read_in_ranges(kernel):
    one = await kernel()
    await one.cell("open('big', 'wb').write(bytes(range(256)) * 65536)")
    key = one.chain[-1].key
    got = [c async for c in one.engine.read(key, "big", offset=256 * 65536 - 3)]
    assert b"".join(got) == b"\xfd\xfe\xff"
    whole = b"".join([c async for c in one.engine.read(key, "big")])
    assert whole == bytes(range(256)) * 65536


async def test_a_lost_session_is_opened_again(kernel):
    one = await kernel()
    await one.cell("x = 1")
    waiting = await one.room()
    os.kill(one.engine.connection._session.process.pid, signal.SIGKILL)
    for _ in range(500):
        if not waiting.alive:
            break
        await asyncio.sleep(0.02)
    assert not waiting.alive
    with pytest.raises(RoomLostError) as caught:
        await waiting.run(one.request("x = 2"), Recorder([]))
    assert caught.value.started is False
    await waiting.close()
    _, frames = await one.cell("print(x)")
    assert text(frames) == "1\n"


async def test_a_session_lost_under_a_cell_says_that_it_may_have_run(kernel):
    one = await kernel()
    await one.cell("x = 1")
    room = await one.room()
    listener = Listener()
    running = asyncio.create_task(
        room.run(one.request("print('on', flush=True); import time; time.sleep(600)"), listener)
    )
    await listener.began()
    os.kill(one.engine.connection._session.process.pid, signal.SIGKILL)
    with pytest.raises(RoomLostError) as caught:
        await asyncio.wait_for(running, 30)
    assert caught.value.started is True
    await room.close()
    _, frames = await one.cell("print(x)")
    assert text(frames) == "1\n"


@killable
async def test_a_killed_engine_loses_nothing(kernel):
    one = await kernel()
    await one.cell("import os; x = [1]; open('f', 'w').write('kept')")
    await one.cell("x.append(2)")
    room = await one.room()
    listener = Listener()
    running = asyncio.create_task(
        room.run(one.request("print('on', flush=True); import time; time.sleep(600)"), listener)
    )
    await listener.began()
    await asyncio.to_thread(subprocess.run, KILL, shell=True, check=True, capture_output=True)
    with pytest.raises(RoomLostError) as caught:
        await asyncio.wait_for(running, 60)
    assert caught.value.started is True
    await room.close()
    with pytest.raises(DaggerKernelError, match="does not answer|No Dagger engine answers"):
        await one.cell("print(x)")
    await asyncio.to_thread(subprocess.run, START, shell=True, check=True, capture_output=True)
    _, frames = await one.cell("print(x, open('f').read())")
    assert text(frames) == "[1, 2] kept\n"


async def test_a_missing_upload_is_told_and_does_not_hang(kernel):
    one = await kernel()
    await one.cell("x = 1")
    one.put("upload", files=(PutFile(path="a", blob="0" * 64, size=1),))
    with pytest.raises(BlobError):
        await asyncio.wait_for(repeated(one), 60)
    one.chain.pop()
    _, frames = await one.cell("print(x)")
    assert text(frames) == "1\n"
