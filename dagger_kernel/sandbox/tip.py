"""Where a sandbox stands: its chain, kept beside the log so that nothing grows with history."""

from __future__ import annotations

from ..engines.base import Base, ChainStep
from ..log import LogStore
from ..steps import Kind, Result, Step, root_key
from .attachments import origin_of
from .chains import chain_root, chain_step, has_effect, to_chain
from .drift import DriftFinder
from .logbook import LogCalls
from .secrets import Secrets


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
    branch
        Changes when the sandbox was rewound by somebody else.
    """

    def __init__(self, logbook: LogCalls, log: LogStore, sandbox_id: str, secrets: Secrets) -> None:
        self._logbook = logbook
        self._log = log
        self._sandbox_id = sandbox_id
        self._secrets = secrets
        self._results: dict[str, Result] = {}
        self._places: dict[str, int] = {}  # step id -> length of the chain after it
        # name of a mounted skill -> length of the chain after it, version
        self._mounts: dict[str, tuple[int, str]] = {}
        self._recorded: tuple[str, str] = ("", "")  # engine and digest of the chain's base
        self.step: Step | None = None
        self.chain: list[ChainStep] = []
        self.drift = DriftFinder(self._results, secrets)
        self.next_execution_count = 1
        self.branch = 0

    async def load(self) -> None:
        """Read from the log what this has not seen: the whole chain the first time, then the new steps."""
        tip = await self._logbook.call(self._log.tip, self._sandbox_id)
        call, since = self._logbook.call, self._log.chain_since
        new = await call(since, tip.id, self._places, outputs=False) if tip else []
        before = origin_of(new[0][0]) if new else tip and tip.id
        if before != (self.step.id if self.step else None):
            self.branch += 1
        kept = self.chain[: self._places[before] if before else 0]
        self.step = tip
        self._note_places(new, len(kept))
        for step, result in new:
            self._note_mount(step, result)
        # A new list: a standby that is being opened reads the old one.
        self.chain = kept + to_chain(new, kept[-1].key if kept else chain_root(new))
        self.lend()
        # An upload may come before any base: the first step that ran tells it.
        ran = next((step for step, _ in new if step.base_digest and step.engine), None)
        if before is None or not self._recorded[0]:
            self._recorded = (ran.engine, ran.base_digest) if ran else ("", "")
        # A rewind's key is its target's: its own empty result must not stand for the target's.
        ran_steps = [(s, r) for s, r in new if r and s.kind is not Kind.REWIND]
        self._results.update({step.key: result for step, result in ran_steps})
        counts = [result.execution_count or 0 for _, result in new if result]
        self.next_execution_count = max(self.next_execution_count, max(counts, default=0) + 1)

    async def refresh(self) -> None:
        """Look whether somebody else appended: another kernel, the server, an upload."""
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
            self.chain.append(self._secrets.lend(entry))
        self._places[step.id] = len(self.chain)
        self._note_mount(step, result)
        self._results[step.key] = result
        self.step = step
        if result.execution_count:
            self.next_execution_count = max(self.next_execution_count, result.execution_count + 1)

    @property
    def mounted(self) -> dict[str, str]:
        """Name and version of each mounted skill."""
        return {name: digest for name, (_, digest) in self._mounts.items()}

    def _note_mount(self, step: Step, result: Result | None) -> None:
        if step.kind is Kind.MOUNT and result is not None:
            place = self._places[step.id]
            self._mounts[step.payload["name"]] = (place, step.payload["digest"])

    def _note_places(self, new: list[tuple[Step, Result | None]], place: int) -> None:
        """Note how long the chain is after each new step, the first of which stands at a place."""
        # What a rewind left behind is no longer a beginning of the chain.
        self._places = {name: end for name, end in self._places.items() if end <= place}
        self._mounts = {name: made for name, made in self._mounts.items() if made[0] <= place}
        for step, result in new:
            place += has_effect(step, result)
            self._places[step.id] = place

    def lend(self) -> None:
        """Let the steps that had secrets have them again when they are repeated, as far as they are here."""
        self.chain = [self._secrets.lend(entry) for entry in self.chain]

    def key(self, base: Base) -> str:
        """Return the key of the tip's state."""
        return self.chain[-1].key if self.chain else root_key(base.digest, base.runner_digest)

    def recorded_base(self, engine_name: str) -> str | None:
        """Return the digest of the base that the chain began on, if this engine made it."""
        name, digest = self._recorded
        return digest if name == engine_name else None
