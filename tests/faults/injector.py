"""Faults by the dice, and the promise they are held against.

A trial runs cells that append a number to a list, to a file and to the output. Whatever breaks: what was
acknowledged is there, once, in order, in the variables, in the file and in the log. Used by the tests here and by
``python -m benchmarks.soak``.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

from dagger_kernel.errors import DaggerKernelError
from dagger_kernel.sandbox import SandboxSession, run_source
from dagger_kernel.settings import Settings

CELL = """
import time
try: xs
except NameError: xs = []
xs.append({number})
print('at {number}', flush=True)
open('log.txt', 'a').write('{number}\\n')
{extra}
"""
CHECK = "print(*xs if 'xs' in dir() else ()); print(*open('log.txt').read().split() if __import__('os').path.exists('log.txt') else ())"
EXTRAS = ["pass", "time.sleep(0.05)", "open(f'f{len(xs)}.csv', 'w').write('a,b\\n' * 100)", "big = list(range(20000))", "raise ValueError(len(xs))",
          "import os; os._exit(3)", "display({'text/plain': 'x'}, raw=True)"]  # fmt: skip


class Listener:
    """Strikes when the cell has begun."""

    def __init__(self, strike=None):
        self.text, self._strike = "", strike

    def event(self, head, body):
        # A library may say something beside, on a machine that is slow: on standard error.
        if head["type"] == "stream" and head["name"] == "stdout":
            self.text += head["text"]
            if self._strike and "at " in self.text:
                strike, self._strike = self._strike, None
                strike()

    async def input(self, prompt, password):
        raise EOFError


class Trial:
    """One sandbox and what is known of it.

    Parameters
    ----------
    data_dir
        Data directory, which other trials may share.
    dice
        Seeded source of every choice.
    """

    def __init__(self, data_dir, dice, **settings):
        self.settings = Settings.load(data_dir=str(data_dir), wall_seconds=30.0, **settings)
        self.layers = Path(data_dir) / "layers"
        self.dice = dice
        self.session = None
        self.id = None
        self.number = 0
        self.acknowledged = []
        self.faults = Counter()
        self.errors = Counter()

    async def open(self):
        self.session = await SandboxSession.open(self.settings, sandbox_id=self.id)
        self.id = self.session.id

    async def close(self):
        if self.session is not None:
            await self.session.close()
            self.session = None

    # -- faults

    def rooms(self):
        engine = self.session._rooms._engine
        return [] if engine is None else list(engine._rooms)

    def zygotes(self):
        engine = self.session._rooms._engine
        return [] if engine is None else list(engine._zygotes.values())

    def kill_zygote(self):
        for zygote in self.zygotes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(zygote._process.pid, signal.SIGKILL)

    def kill_rooms(self):
        for room in self.rooms():
            with contextlib.suppress(Exception):
                room._zygote.kill(room._number)

    def break_link(self):
        for room in self.rooms():
            room._link._writer.transport.abort()

    def own_layers(self):
        """Layers of this trial only: others may run beside it."""
        names = [step.key[:20] for step in self.session._tip.chain]
        return [self.layers / name for name in names if (self.layers / name).is_dir()]

    def some_layers(self):
        own = self.own_layers()
        return self.dice.sample(own, min(len(own), self.dice.randint(1, 3)))

    def delete_layers(self):
        for path in self.some_layers():
            shutil.rmtree(path, ignore_errors=True)

    def empty_layers(self):
        """As ``rm -rf`` does: the state first, the directory last, while a room may be opening on it."""
        for path in self.some_layers():
            shutil.rmtree(path / "fs" / ".dk", ignore_errors=True)
            shutil.rmtree(path, ignore_errors=True)

    def delete_layer_content(self):
        for path in self.some_layers():
            shutil.rmtree(path / "fs", ignore_errors=True)

    def damage_layer_record(self):
        for path in self.some_layers():
            file = path / "layer.json"
            if file.exists():
                text = file.read_bytes()
                file.write_bytes(
                    self.dice.choice(
                        [
                            b"",
                            text[: len(text) // 2],
                            b"\0" * len(text),
                            b"[]",
                            b'{"key": 5}',
                            os.urandom(50),
                            b"[" * 50000,
                        ]
                    )
                )

    @contextlib.contextmanager
    def failing(self, owner, name, error, after=0):
        """Let a method fail once, after so many calls."""
        real = getattr(owner, name)
        left = [after]

        def broken(*args, **kwargs):
            left[0] -= 1
            if left[0] == -1:
                raise error
            return real(*args, **kwargs)

        setattr(owner, name, broken)
        try:
            yield
        finally:
            setattr(owner, name, real)

    @contextlib.contextmanager
    def clock_jump(self):
        real, shift = time.time, self.dice.choice([-86400.0, 86400.0, 10 * 365 * 86400.0, -3600.0])
        time.time = lambda: real() + shift
        try:
            yield
        finally:
            time.time = real

    # -- one turn

    async def turn(self, fault):
        """Run one cell under a fault, then look."""
        self.faults[fault] += 1
        self.number += 1
        number = self.number
        extra = self.dice.choice(EXTRAS)
        strike, context = None, contextlib.nullcontext()
        full = OSError(errno.ENOSPC, "No space left on device")
        log = self.session._log
        engine = await self.session._rooms.engine()
        if fault in (
            "kill_zygote",
            "kill_rooms",
            "delete_layers",
            "empty_layers",
            "delete_layer_content",
            "damage_layer_record",
        ):
            getattr(self, fault)()
        elif fault in ("kill_zygote_running", "kill_rooms_running", "break_link_running"):
            strike, extra = getattr(self, fault.removesuffix("_running")), "time.sleep(0.1)"
        elif fault == "interrupt_running":
            loop = asyncio.get_running_loop()
            strike, extra = (lambda: loop.create_task(self.session.interrupt())), "time.sleep(20)"
        elif fault == "full_at_room":
            context = self.failing(engine.layers, "new_room", full)
        elif fault == "full_at_commit":
            context = self.failing(engine.layers, "commit", full)
        elif fault == "full_at_squash":
            context = self.failing(os, "link", full, self.dice.randint(0, 3))
        elif fault == "full_at_rename":
            context = self.failing(os, "rename", full, self.dice.randint(0, 2))
        elif fault == "full_at_blob":
            extra = "open('export.csv', 'w').write('x' * 99)"
            context = self.failing(log.blobs, "put", full)
        elif fault == "full_at_append":
            context = self.failing(log._writer, "append", full)
        elif fault == "full_at_finish":
            context = self.failing(log._writer, "finish", full)
        elif fault == "clock_jump":
            context = self.clock_jump()
        elif fault == "reopen":
            await self.close()
            await self.open()
        try:
            with context:
                done = await run_source(
                    self.session, CELL.format(number=number, extra=extra), Listener(strike)
                )
        except (DaggerKernelError, OSError) as error:
            self.errors[type(error).__name__] += 1
            assert str(error), fault
        else:
            if done.result.status in ("ok", "error", "interrupted", "limit"):
                self.acknowledged.append((number, str(done.result.status), fault))
        await self.look(fault)

    async def look(self, fault=""):
        """Compare variables, file and log with what was acknowledged."""
        listener = Listener()
        done = await run_source(self.session, CHECK, listener)
        assert done.result.status == "ok", (
            f"{fault}: looking ended with {done.result.status} {done.result.reason}: {done.result.outputs}"
        )
        shown, kept = ([int(n) for n in line.split()] for line in listener.text.split("\n")[:2])
        steps = await self.session.steps()
        assert [step.seq for step, _ in steps] == list(range(1, len(steps) + 1)), fault
        logged = {}
        for step, result in steps:
            if "xs.append(" in step.source and result is not None:
                number = int(step.source.split("xs.append(")[1].split(")")[0])
                assert number not in logged, f"{fault}: step {number} is doubled"
                logged[number] = result
        for number, status, _ in self.acknowledged:
            assert number in logged, f"{fault}: {number} was acknowledged and is lost"
            assert str(logged[number].status) == status
        # Once and in order; a process that ended (os._exit, an interrupt) keeps files and not variables.
        for found in (shown, kept):
            assert found == sorted(set(found)), f"{fault}: {found}"
            assert set(found) <= set(logged), (
                f"{fault}: {set(found) - set(logged)} has an effect and no result"
            )
        # A result may say that saving failed ("variables are as before"): that was told, not lost.
        told = {
            n
            for n, r in logged.items()
            if r.state_report.get("error") or r.state_report.get("kept") == "before"
        }
        whole = [
            n
            for n, r in logged.items()
            if str(r.status) == "ok"
            or (str(r.status) == "error" and r.exit_code == 1 and n not in told)
        ]
        assert set(whole) <= set(kept), f"{fault}: {set(whole) - set(kept)} lost their files"
        gone = set(whole) - set(shown)
        assert not gone, (
            f"{fault}: {gone} lost their variables: {[(logged[n], self.acknowledged) for n in gone]}; {listener.text}"
        )


FAULTS = (
    "none", "reopen", "kill_zygote", "kill_zygote_running", "kill_rooms", "kill_rooms_running", "break_link_running",
    "interrupt_running", "delete_layers", "empty_layers", "delete_layer_content", "damage_layer_record", "full_at_room", "full_at_commit",
    "full_at_squash", "full_at_rename", "full_at_blob", "full_at_append", "full_at_finish", "clock_jump",
)  # fmt: skip


def dice_of(seed):
    return random.Random(seed)
