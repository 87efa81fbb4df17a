"""The same tests on every engine."""

from __future__ import annotations

import pytest

from dagger_kernel.engines.base import ChainStep
from dagger_kernel.engines.replay import Recorder
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings
from dagger_kernel.steps import Limits, child_key, fresh_nonce


class Bench:
    """An engine, a base and one growing chain."""

    def __init__(self, engine, blobs, settings):
        self.engine, self.blobs, self.settings = engine, blobs, settings
        self.base = None
        self.chain = []

    async def start(self):
        self.base = await self.engine.prepare()
        return self

    async def room(self, nonce=None):
        return await self.engine.open(
            self.chain, nonce or fresh_nonce(), base=self.base, sandbox_id="contract"
        )

    def request(self, source, **changes):
        return {
            "type": "step",
            "language": "python",
            "source": source,
            "silent": False,
            "store_history": True,
            "execution_count": len(self.chain) + 1,
            "user_expressions": {},
            "allow_stdin": False,
            "limits": Limits(wall_seconds=60).to_json(),
            "answers": None,
            "env": {},
            "replay": False,
            "exports": {"exclude": []},
            **changes,
        }

    async def cell(self, source, handler=None, **changes):
        """Run a cell as the chain's next step; return its outcome and frames."""
        room = await self.room()
        handler = handler or Recorder([])
        request = self.request(source, **changes)
        outcome = await room.run(request, handler)
        await self.add(room, request, outcome)
        return outcome, handler

    async def add(self, room, request, outcome):
        key = child_key(room.parent_key, room.nonce)
        await room.commit(key)
        request = {**request, "answers": outcome.answers}
        self.chain.append(
            ChainStep(
                seq=len(self.chain) + 1,
                kind="cell",
                key=key,
                parent_key=room.parent_key,
                nonce=room.nonce,
                request=request,
            )
        )

    def put(self, kind, **fields):
        """Add a step that is no cell."""
        parent = self.chain[-1].key
        nonce = fresh_nonce()
        self.chain.append(
            ChainStep(
                seq=len(self.chain) + 1,
                kind=kind,
                key=child_key(parent, nonce),
                parent_key=parent,
                nonce=nonce,
                **fields,
            )
        )


def text(handler, name="stdout"):
    """Return the text of a stream."""
    return "".join(
        head["text"]
        for head, _ in handler.frames
        if head["type"] == "stream" and head["name"] == name
    )


def kinds(handler):
    return [head["type"] for head, _ in handler.frames]


@pytest.fixture(params=["local", pytest.param("dagger", marks=pytest.mark.dagger)])
async def bench(request, fresh_data_dir):
    settings = Settings.load(data_dir=str(fresh_data_dir))
    log = open_log(settings)
    if request.param == "local":
        from dagger_kernel.engines.local import LocalEngine

        engine = LocalEngine(settings, log.blobs)
    else:
        from dagger_kernel.engines.dagger import DaggerEngine

        engine = DaggerEngine(settings, log.blobs)
    try:
        yield await Bench(engine, log.blobs, settings).start()
    finally:
        await engine.close()
        log.close()
