"""Running steps: state and files carry over, failures are results, rooms leave nothing behind."""

from __future__ import annotations

import asyncio

import pytest

from dagger_kernel.engines.replay import Recorder
from dagger_kernel.errors import RoomLostError, RoomNotOpenedError

from .conftest import kinds, text


async def test_variables_files_and_directory_carry_over(bench):
    await bench.cell(
        "x = [1]; y = x; open('a.txt', 'w').write('file'); import os; os.mkdir('d'); os.chdir('d')"
    )
    outcome, frames = await bench.cell(
        "y.append(2); print(x, open('../a.txt').read(), os.getcwd())"
    )
    assert outcome.status == "ok"
    assert text(frames) == "[1, 2] file /home/sandbox/d\n"


async def test_temporary_files_carry_over(bench):
    await bench.cell("open('/tmp/scratch', 'w').write('kept')")
    _, frames = await bench.cell("print(open('/tmp/scratch').read())")
    assert text(frames) == "kept\n"


async def test_deleted_files_stay_deleted(bench):
    await bench.cell(
        "import os; os.makedirs('d/e'); open('d/e/f', 'w').write('1'); open('g', 'w').close()"
    )
    await bench.cell("import os, shutil; shutil.rmtree('d'); os.remove('g'); os.mkdir('d')")
    _, frames = await bench.cell("import os; print(os.listdir('d'), os.path.exists('g'))")
    assert text(frames) == "[] False\n"


async def test_a_directory_of_an_earlier_step_can_be_renamed(bench):
    await bench.cell("import os; os.mkdir('old'); open('old/f', 'w').write('content')")
    await bench.cell("import os; os.rename('old', 'new')")
    _, frames = await bench.cell("import os; print(os.path.exists('old'), open('new/f').read())")
    assert text(frames) == "False content\n"


async def test_no_process_survives_its_cell(bench):
    outcome, _ = await bench.cell("import subprocess; p = subprocess.Popen(['sleep', '600'])")
    assert outcome.status == "ok"
    assert "sleep" in " ".join(outcome.killed)
    _, frames = await bench.cell(
        "import subprocess; print(subprocess.run(['pgrep', '-x', 'sleep']).returncode)"
    )
    assert text(frames) == "1\n"


async def test_a_failing_cell_is_a_result_and_keeps_what_it_did(bench):
    outcome, frames = await bench.cell("a = 1; open('f', 'w').write('x'); 1 / 0")
    assert outcome.status == "error"
    assert "error" in kinds(frames)
    _, frames = await bench.cell("print(a, open('f').read())")
    assert text(frames) == "1 x\n"


async def test_a_dying_cell_is_a_result(bench):
    await bench.cell("a = 1")
    outcome, _ = await bench.cell("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert outcome.status == "error"
    assert outcome.exit_code == -11
    _, frames = await bench.cell("print(a)")
    assert text(frames) == "1\n"


async def test_the_user_is_unprivileged(bench):
    _, frames = await bench.cell(
        "import os; s = open('/proc/self/status').read(); print(os.getuid(), "
        "[l.split()[1] for l in s.splitlines() if l.startswith(('CapEff', 'CapPrm'))])"
    )
    assert text(frames) == "1000 ['0000000000000000', '0000000000000000']\n"


async def test_output_arrives_while_the_cell_runs(bench):
    class Listener(Recorder):
        def __init__(self):
            super().__init__([])
            self.first = asyncio.Event()

        def event(self, head, body):
            super().event(head, body)
            if "ready" in head.get("text", ""):
                self.first.set()

    listener = Listener()
    room = await bench.room()
    request = bench.request("print('ready'); input('go? '); print('done')", allow_stdin=True)
    gate = asyncio.Event()

    async def answer(prompt, password):
        await gate.wait()
        return "yes"

    listener.input = answer
    running = asyncio.create_task(room.run(request, listener))
    await asyncio.wait_for(listener.first.wait(), 30)
    assert not running.done()
    gate.set()
    outcome = await running
    assert (outcome.status, outcome.answers) == ("ok", ["yes"])
    await bench.add(room, request, outcome)


async def test_an_interrupt_ends_the_cell_and_keeps_its_state(bench):
    room = await bench.room()
    listener = Recorder([])
    request = bench.request(
        "before = 1\nprint('sleeping', flush=True)\nimport time\ntime.sleep(600)"
    )
    running = asyncio.create_task(room.run(request, listener))
    while "sleeping" not in text(listener):
        await asyncio.sleep(0.02)
    await room.interrupt()
    outcome = await asyncio.wait_for(running, 30)
    assert outcome.status == "interrupted"
    await bench.add(room, request, outcome)
    _, frames = await bench.cell("print(before)")
    assert text(frames) == "1\n"


async def test_interrupting_an_idle_room_changes_nothing(bench):
    room = await bench.room()
    await room.interrupt()
    outcome = await room.run(bench.request("print('still here')"), Recorder([]))
    assert outcome.status == "ok"
    await room.discard()


async def test_a_discarded_room_leaves_nothing(bench):
    await bench.cell("x = 1")
    room = await bench.room()
    await room.run(bench.request("x = 2; open('f', 'w').close()"), Recorder([]))
    await room.discard()
    _, frames = await bench.cell("import os; print(x, os.path.exists('f'))")
    assert text(frames) == "1 False\n"


async def test_a_closed_room_leaves_nothing_and_takes_no_step(bench):
    room = await bench.room()
    assert room.alive
    await room.close()
    assert not room.alive
    with pytest.raises(RoomLostError):
        await room.run(bench.request("pass"), Recorder([]))
    await room.close()


async def test_questions_see_the_state_and_do_not_touch_it(bench):
    await bench.cell("wombat = {'a': 1}; log = []")
    room = await bench.room()
    answer = await room.ask("complete", {"code": "womb", "cursor_pos": 4})
    assert "wombat" in answer["matches"]
    inspected = await room.ask("inspect", {"code": "log", "cursor_pos": 3, "detail_level": 0})
    assert inspected["found"]
    outcome = await room.run(bench.request("print(log)"), Recorder([]))
    assert outcome.status == "ok"
    await room.discard()


async def test_two_rooms_on_one_state_do_not_meet(bench):
    await bench.cell("x = 1")
    one, two = await bench.room(), await bench.room()
    await one.run(bench.request("x = 2; open('f', 'w').close()"), Recorder([]))
    listener = Recorder([])
    await two.run(bench.request("import os; print(x, os.path.exists('f'))"), listener)
    assert text(listener) == "1 False\n"
    await one.discard()
    await two.discard()


TALKATIVE = """
import site, pathlib
place = pathlib.Path(site.getsitepackages()[0]) / 'talkative'
place.mkdir()
lines = ["import os", "for n in (1, 2): os.write(n, b'hello ' * 5000)", "class Thing: pass"]
(place / '__init__.py').write_text(chr(10).join(lines))
"""


async def test_a_library_that_talks_while_it_is_imported_holds_no_room(bench):
    """Rooms import what the variables need while they wait: nobody may have to read what is said there."""
    await bench.cell(TALKATIVE)
    await bench.cell("import talkative; thing = talkative.Thing()")
    for _ in range(6):
        room = await bench.room()
        async with asyncio.timeout(60):
            # Warmed when it answers: all that is said while importing has been said.
            while (await room.ask("complete", {"code": "thi", "cursor_pos": 3})).get("matches") != [
                "thing"
            ]:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.3)
            handler = Recorder([])
            request = bench.request("print(type(thing).__name__)")
            outcome = await room.run(request, handler)
        assert outcome.status == "ok"
        assert text(handler) == "Thing\n"
        await bench.add(room, request, outcome)


async def test_libraries_find_their_caches_and_settings_at_home(bench):
    """Also those imported beforehand: where nothing can be written they look for another place, for good."""
    places = "/home/sandbox/.cache/matplotlib /home/sandbox/.config/matplotlib"
    for _ in range(3):
        _, frames = await bench.cell(
            "import matplotlib.pyplot, os\n"
            "cache = matplotlib.get_cachedir()\n"
            "print(cache, matplotlib.get_configdir(), os.environ.get('MPLCONFIGDIR'))\n"
            "print(any(name.startswith('fontlist') for name in os.listdir(cache)))"
        )
        assert text(frames) == f"{places} None\nTrue\n"


@pytest.mark.parametrize(
    "damage",
    [
        "shutil.rmtree('/home/sandbox/.venv')",
        "os.rename('/home/sandbox/.venv', '/home/sandbox/venv')",
    ],
)
async def test_without_its_environment_a_sandbox_says_how_to_go_back(bench, damage):
    await bench.cell("x = 5")
    await bench.cell(f"import os, shutil; {damage}")
    with pytest.raises(RoomNotOpenedError) as caught:
        await bench.room()
    assert "/home/sandbox/.venv" in caught.value.what
    assert "%sandbox rewind" in caught.value.remedy
    broken = bench.chain.pop()
    assert ".venv" not in {file.path for file in await bench.engine.files(broken.key)}
    _, frames = await bench.cell("print(x)")
    assert text(frames) == "5\n"
