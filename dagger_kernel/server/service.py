"""What the REST API does with the log, without HTTP: looks things up, checks the owner, puts files in.

The methods block on the database and are called in worker threads; what needs an engine is in `states`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import SandboxNotFoundError, StepNotFoundError
from ..log import SandboxLock
from . import views

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..log import LogStore, SandboxRow
    from ..sandbox import Attachments
    from ..settings import Settings
    from ..steps import Result, Step

PAGE = 500
"""Steps in one answer."""

LOCK_SECONDS = 20.0
"""How long a change waits for a running cell."""

KEPT_SANDBOXES = 64
"""Sandboxes whose files the server remembers from one upload to the next."""

ID_LENGTH = 32
"""Digits of a step's id; a sequence number has fewer."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file whose bytes are in the blob store."""

    path: str
    blob: str
    size: int
    mime: str


class SandboxService:
    """The log, as one owner may see it.

    Parameters
    ----------
    settings
        Of the server's process; they must name the same log as the kernels'.
    log
        An open log.
    """

    def __init__(self, settings: Settings, log: LogStore) -> None:
        self.settings = settings
        self.log = log
        self._attachments: OrderedDict[str, Attachments] = OrderedDict()
        self._keeping = threading.Lock()

    # -- sandboxes -----------------------------------------------------------------------------

    def sandboxes(self, owner: str, notebooks: Sequence[str] | None) -> list[dict[str, Any]]:
        """Show the owner's sandboxes, the last active first; of some notebooks or of all."""
        found: list[SandboxRow] = []
        for notebook in notebooks if notebooks is not None else [None]:
            found += self.log.sandboxes(owner, notebook)
        unique = {sandbox.id: sandbox for sandbox in found}.values()
        ordered = sorted(unique, key=lambda row: (row.last_activity, row.created), reverse=True)
        return [views.sandbox_view(sandbox) for sandbox in ordered]

    def sandbox(self, owner: str, sandbox_id: str) -> SandboxRow:
        """Return a sandbox.

        Raises
        ------
        SandboxNotFoundError
            There is none, or it is somebody else's: the two must not be told apart.
        """
        sandbox = self.log.sandbox(sandbox_id)
        # The log takes a prefix of an id, too; an address is the whole one.
        if sandbox.owner != owner or sandbox.id != sandbox_id:
            raise SandboxNotFoundError(sandbox_id)
        return sandbox

    def sandbox_detail(self, owner: str, sandbox_id: str) -> dict[str, Any]:
        """Show one sandbox."""
        return views.sandbox_view(self.sandbox(owner, sandbox_id))

    def begin(self, owner: str, notebook: str) -> dict[str, Any]:
        """Return the sandbox that the notebook's kernel continues, a new one if there is none."""
        latest = self.log.latest_sandbox(owner, notebook)
        return views.sandbox_view(latest or self.log.create_sandbox(owner, notebook))

    def restart(self, owner: str, sandbox_id: str) -> dict[str, Any]:
        """End a sandbox and begin an empty one for the same notebook."""
        sandbox = self.sandbox(owner, sandbox_id)
        self.log.end_sandbox(sandbox.id)
        return views.sandbox_view(self.log.create_sandbox(owner, sandbox.notebook))

    def reopen(self, owner: str, sandbox_id: str, seq: int | None) -> dict[str, Any]:
        """Begin a sandbox that continues an older one from its end or from one of its steps.

        The older one stays as it is; the new one is the notebook's last active one, so its kernel
        takes it up when it starts next.
        """
        from ..sandbox import fork

        self.sandbox(owner, sandbox_id)
        return views.sandbox_view(fork(self.log, sandbox_id, seq))

    def rewind(self, owner: str, sandbox_id: str, seq: int) -> dict[str, Any]:
        """Let the next cell continue from an earlier step (0: the base); nothing is deleted."""
        from ..sandbox import rewind

        with self._lock(owner, sandbox_id):
            step = rewind(self.log, sandbox_id, seq)
        return views.step_view(step, self.log.result(step.id))

    @contextmanager
    def _lock(self, owner: str, sandbox_id: str) -> Iterator[None]:
        """Hold the right to append; a cell that runs has it for as long as it runs."""
        lock = SandboxLock(self.settings, self.sandbox(owner, sandbox_id).id, holder="the panel")
        lock.acquire(LOCK_SECONDS)
        try:
            yield
        finally:
            lock.release()

    # -- steps ---------------------------------------------------------------------------------

    def steps(self, owner: str, sandbox_id: str, after: int, limit: int) -> dict[str, Any]:
        """Show the steps after a sequence number, in order."""
        self.sandbox(owner, sandbox_id)
        limit = max(1, min(limit, PAGE))
        rows = self.log.steps(sandbox_id, after=after, limit=limit + 1, outputs=False)
        shown = [views.step_view(step, result) for step, result in rows[:limit]]
        return {"steps": shown, "more": len(rows) > limit}

    def inherited(self, owner: str, sandbox_id: str) -> dict[str, Any]:
        """Show the steps of other sandboxes that a fork continues, in order."""
        parent = self.sandbox(owner, sandbox_id).parent_step
        rows = self.log.chain(parent, outputs=False) if parent else []
        mine: dict[str, bool] = {}
        for step, _ in rows:
            if step.sandbox_id not in mine:
                mine[step.sandbox_id] = self.log.sandbox(step.sandbox_id).owner == owner
        shown = [views.step_view(step, result) for step, result in rows if mine[step.sandbox_id]]
        return {"steps": shown, "more": False}

    def step(self, owner: str, sandbox_id: str, name: str) -> tuple[Step, Result | None]:
        """Return one step and its result.

        Parameters
        ----------
        name
            Its sequence number, or its id.

        Raises
        ------
        StepNotFoundError
            There is none in this sandbox.
        """
        self.sandbox(owner, sandbox_id)
        if len(name) == ID_LENGTH:
            step = self.log.step(name)
            if step.sandbox_id != sandbox_id:
                raise StepNotFoundError(name)
            return step, self.log.result(name)
        rows = self.log.steps(sandbox_id, after=int(name) - 1, limit=1)
        if not rows or rows[0][0].seq != int(name):
            raise StepNotFoundError(name)
        return rows[0]

    def step_detail(self, owner: str, sandbox_id: str, name: str) -> dict[str, Any]:
        """Show everything about one step."""
        return views.step_detail(*self.step(owner, sandbox_id, name))

    def tip(self, owner: str, sandbox_id: str) -> Step | None:
        """Return the step whose state is the sandbox's present one; None: the base."""
        return self.log.tip(self.sandbox(owner, sandbox_id).id)

    # -- files ---------------------------------------------------------------------------------

    def artifacts(self, owner: str, sandbox_id: str) -> list[dict[str, Any]]:
        """Show every file that steps exported or that was put in, oldest first."""
        self.sandbox(owner, sandbox_id)
        found = self.log.artifacts(sandbox_id)
        return [views.artifact_view(item) for item in found if item.role in ("export", "upload")]

    def artifact(self, owner: str, sandbox_id: str, name: str, path: str) -> Stored:
        """Return where the bytes of a step's file are.

        Parameters
        ----------
        name
            The step, by sequence number or id.

        Raises
        ------
        FileNotFoundError
            The step has no such file, or its bytes were not kept.
        """
        step, result = self.step(owner, sandbox_id, name)
        for item in self.log.artifacts(sandbox_id, step.id):
            if item.path == path:
                mime = views.guess_mime(path) if item.role == "upload" else item.mime
                return Stored(path, item.blob, item.size, mime)
        for change in views.files_of(step, result):
            if change["path"] == path:
                raise FileNotFoundError(f"{path!r}: {change['skipped'] or 'it was deleted'}")
        raise FileNotFoundError(repr(path))

    def find(self, owner: str, sandbox_id: str, name: str, path: str) -> Stored:
        """Return a file of a step that may belong to another sandbox of the owner.

        A fork shows files of the sandbox it continues; their steps are named by id.
        """
        if len(name) == ID_LENGTH:
            sandbox_id = self.log.step(name).sandbox_id
        try:
            return self.artifact(owner, sandbox_id, name, path)
        except SandboxNotFoundError:
            raise StepNotFoundError(name) from None

    def known_files(self, step: Step) -> dict[str, dict[str, Any]]:
        """Return the files that the log knows in the state after a step, by path.

        Only uploads and exported files are known this way; it needs no engine.
        """
        known: dict[str, dict[str, Any]] = {}
        for one, result in self.log.chain(step.id, outputs=False):
            for item in views.files_of(one, result):
                if item["kind"] == "deleted":
                    known.pop(item["path"], None)
                elif item["kind"] != "output":
                    known[item["path"]] = item | {"step": one.seq}
        return known

    def upload(
        self, owner: str, sandbox_id: str, files: list[tuple[str, BinaryIO]]
    ) -> dict[str, Any]:
        """Log files that were put in, as one step."""
        from ..sandbox import Given, upload_files

        with self._lock(owner, sandbox_id):
            # Dropping the same file twice is one attachment.
            done = upload_files(
                self.log,
                sandbox_id,
                (Given(name, content) for name, content in files),
                self.settings,
                attachments=self._attachments_of(sandbox_id),
                reuse_equal=True,
            )
        result = self.log.result(done.step.id) if done.step else None
        return {
            "step": views.step_view(done.step, result) if done.step else None,
            "paths": list(dict.fromkeys(path for _, path in done.placed)),
            "skipped": [
                {"name": name, "size": None, "why": why} for name, why in done.skipped.items()
            ],
        }

    def _attachments_of(self, sandbox_id: str) -> Attachments:
        """Return what is known of a sandbox's files, so that an upload reads new steps only."""
        from ..sandbox import Attachments

        with self._keeping:
            kept = self._attachments.pop(sandbox_id, None) or Attachments()
            self._attachments[sandbox_id] = kept
            while len(self._attachments) > KEPT_SANDBOXES:
                self._attachments.popitem(last=False)
            return kept

    def chain(self, step: Step) -> list[tuple[Step, Result | None]]:
        """Return the steps from the base to a step."""
        return self.log.chain(step.id, outputs=False)

    # -- blobs ---------------------------------------------------------------------------------

    def open_blob(self, digest: str) -> BinaryIO:
        """Open a blob for reading."""
        return self.log.blobs.open(digest)
