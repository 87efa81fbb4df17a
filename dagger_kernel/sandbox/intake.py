"""What comes into a sandbox besides its cells: uploads, what lies beside the notebook, skills."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable

from ..engines.base import Base
from ..errors import SkillError
from ..log import LogStore
from ..settings import Settings
from ..steps import Kind, Result, Status, Step, child_key, content_nonce
from .attachments import Attachments
from .beside import Beside
from .logbook import Logbook
from .skills import Skill, configured, store
from .tip import Tip
from .uploads import Given, Uploaded, upload_files


class Intake:
    """Logs what comes in. Used by one session, which holds the sandbox's lock."""

    def __init__(
        self, settings: Settings, logbook: Logbook, log: LogStore, tip: Tip, sandbox_id: str
    ) -> None:
        self._settings, self._logbook, self._log = settings, logbook, log
        self._tip, self._sandbox_id = tip, sandbox_id
        self._attachments = Attachments()
        self._skills = configured(settings)
        self._broken: set[str] = set()

    async def upload(self, files: Iterable[Given], *, reuse_equal: bool) -> Uploaded:
        """Log files as one step; see `upload_files`. They are taken in the log's thread, one by one."""
        done = await self._logbook.call(
            upload_files,
            self._log,
            self._sandbox_id,
            files,
            self._settings,
            attachments=self._attachments,
            reuse_equal=reuse_equal,
        )
        await self._tip.refresh()
        return done

    async def take(self, beside: Beside) -> list[str]:
        """Log what is new beside the notebook; return what to tell the user, each thing once."""
        found = await asyncio.to_thread(beside.look, (self._sandbox_id, self._tip.branch))
        if found.files:
            done = await self.upload(found.files, reuse_equal=True)
            found.taken(done.skipped)
        return found.notices

    @property
    def missing_skills(self) -> list[str]:
        """Names of the skills that the chain does not have."""
        return [
            name
            for name in self._skills
            if name not in self._tip.mounted and name not in self._broken
        ]

    async def mount(self, base: Base, engine_name: str) -> AsyncIterator[Skill | SkillError]:
        """Log the missing skills at their versions of now, which this chain keeps; yield each.

        A folder that cannot be mounted is told once and then left alone.
        """
        for name in self.missing_skills:
            call = self._logbook.call
            try:
                skill = await call(store, self._log.blobs, name, self._skills[name])
            except SkillError as error:
                self._broken.add(name)
                yield error
                continue
            tip = self._tip.step
            nonce = content_nonce(["skill", skill.name, skill.digest])
            step = Step(
                id=uuid.uuid4().hex,
                sandbox_id=self._sandbox_id,
                seq=0,
                parent_id=tip.id if tip else None,
                kind=Kind.MOUNT,
                payload=skill.payload(),
                nonce=nonce,
                base_digest=base.digest,
                runner_digest=base.runner_digest,
                engine=engine_name,
                key=child_key(self._tip.key(base), nonce),
            )
            step = await call(self._log.append, step)
            result = await call(self._log.finish, Result(step_id=step.id, status=Status.OK))
            self._tip.advance(step, result)
            yield skill
