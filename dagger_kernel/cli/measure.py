"""How long one step takes on an engine, for ``dagger-kernel doctor``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dagger_kernel.errors import EngineError
from dagger_kernel.sandbox.cell import SilentListener
from dagger_kernel.steps import fresh_nonce

if TYPE_CHECKING:
    from dagger_kernel.engines.base import Engine
    from dagger_kernel.settings import Settings

SANDBOX = "doctor"


async def step_seconds(engine: Engine, settings: Settings) -> float:
    """Return the seconds from opening a room to the result of ``1 + 1``, engine warm.

    Nothing of it stays: no log is written, and the room is discarded.
    """
    base = await engine.prepare()
    seconds = 0.0
    for _warm in (False, True):
        start = time.perf_counter()
        nonce = fresh_nonce()
        room = await engine.open([], nonce, base=base, sandbox_id=SANDBOX)
        try:
            outcome = await room.run(_request(nonce, settings), SilentListener())
        except BaseException:
            await room.close()
            raise
        seconds = time.perf_counter() - start
        await room.discard()
        if outcome.status != "ok":
            raise EngineError(
                f"The trial step ended with status {outcome.status} {outcome.reason}".strip() + ".",
                engine=engine.name,
            )
    return seconds


def _request(nonce: str, settings: Settings) -> dict[str, Any]:
    return {
        "type": "step",
        "nonce": nonce,
        "language": "python",
        "source": "1 + 1",
        "silent": True,
        "store_history": False,
        "execution_count": 1,
        "user_expressions": {},
        "allow_stdin": False,
        "limits": settings.limits.to_json(),
        "answers": None,
        "env": {},
        "replay": False,
        "exports": {"exclude": []},
    }
