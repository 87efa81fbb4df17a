"""A real cell on the local engine while PostgreSQL goes away and comes back in the middle of it."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace

from dagger_kernel.sandbox import SandboxSession, run_source

from ..conftest import borrow_base
from ..faults.injector import CELL, CHECK, Listener
from .helpers import POSTGRESQL


@POSTGRESQL
async def test_a_failover_in_the_middle_of_a_cell(server, settings, shared_base, tmp_path):
    place = borrow_base(shared_base, tmp_path / "dagger_kernel")
    session = await SandboxSession.open(replace(settings, data_dir=str(place), engine="local"))
    try:
        await run_source(session, CELL.format(number=1, extra="pass"), Listener())

        def fail():
            server.stop(signal.SIGQUIT)
            threading.Timer(1.0, server.start).start()

        # The cell ends while the database is away: its result waits for it, and so does the next cell.
        done = await run_source(
            session, CELL.format(number=2, extra="time.sleep(0.2)"), Listener(fail)
        )
        assert str(done.result.status) == "ok"
        await run_source(session, CELL.format(number=3, extra="pass"), Listener())
        listener = Listener()
        await run_source(session, CHECK, listener)
        assert listener.text.splitlines() == ["1 2 3", "1 2 3"]
        steps = await session.steps()
        assert [step.seq for step, _ in steps] == [1, 2, 3, 4]
        assert all(result is not None for _, result in steps)
        assert session._log.verify() == []
    finally:
        await session.close()
