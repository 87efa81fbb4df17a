"""Where a sandbox stands: its chain, kept beside the log so that nothing grows with history."""

from __future__ import annotations

from ..engines.base import Base, ChainStep
from ..log import LogStore
from ..steps import Kind, Result, Step, root_key
from .chains import chain_root, chain_step, to_chain
from .drift import DriftFinder
from .logbook import Logbook


class Tip:
    """The end of a sandbox's log, as last seen.

    Attributes
    ----------
    step
        The step whose state the next one continues; None: the base.
    chain
        What an engine replays to get there.
    drift
        Compares replayed steps with their records.
    next_execution_count
        The last logged cell's number + 1.
    """

    def __init__(self, logbook: Logbook, log: LogStore, sandbox_id: str) -> None:
        self._logbook = logbook
        self._log = log
        self._sandbox_id = sandbox_id
        self._results: dict[str, Result] = {}
        self._recorded: tuple[str, str] = ("", "")  # engine and digest of the chain's base
        self.step: Step | None = None
        self.chain: list[ChainStep] = []
        self.drift = DriftFinder(self._results)
        self.next_execution_count = 1

    async def load(self) -> None:
        """Read the chain from the log."""
        tip = await self._logbook.call(self._log.tip, self._sandbox_id)
        steps = await self._logbook.call(self._log.chain, tip.id, outputs=False) if tip else []
        self.step = tip
        self.chain = to_chain(steps, chain_root(steps))
        # An upload may come before any base: the first step that ran tells it.
        ran = next((step for step, _ in steps if step.base_digest and step.engine), None)
        self._recorded = (ran.engine, ran.base_digest) if ran else ("", "")
        self._results.clear()
        # A rewind's key is its target's: its own empty result must not stand for the target's.
        ran_steps = [(s, r) for s, r in steps if r and s.kind is not Kind.REWIND]
        self._results.update({step.key: result for step, result in ran_steps})
        counts = [result.execution_count or 0 for _, result in steps if result]
        self.next_execution_count = max(self.next_execution_count, max(counts, default=0) + 1)

    async def refresh(self) -> None:
        """Read the chain again if somebody else appended: another kernel, the server, an upload."""
        tip = await self._logbook.call(self._log.tip, self._sandbox_id)
        if (tip.id if tip else None) != (self.step.id if self.step else None):
            await self.load()

    def advance(self, step: Step, result: Result) -> None:
        """Take a finished step as the new tip."""
        parent_key = self.chain[-1].key if self.chain else ""
        entry = chain_step(
            step, result, parent_key or root_key(step.base_digest, step.runner_digest)
        )
        if entry is not None:
            self.chain.append(entry)
        self._results[step.key] = result
        self.step = step
        if result.execution_count:
            self.next_execution_count = max(self.next_execution_count, result.execution_count + 1)

    def key(self, base: Base) -> str:
        """Return the key of the tip's state."""
        return self.chain[-1].key if self.chain else root_key(base.digest, base.runner_digest)

    def recorded_base(self, engine_name: str) -> str | None:
        """Return the digest of the base that the chain began on, if this engine made it."""
        name, digest = self._recorded
        return digest if name == engine_name else None
