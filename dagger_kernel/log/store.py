"""`LogStore`: the one door to the log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from datetime import datetime

from ..errors import LogError
from ..settings import Settings
from ..steps import Result, Step
from . import schema
from .audit import Auditor, Record
from .blobs import BlobStore, open_blobs
from .database import Database
from .history import Entry, History
from .purge import GRACE_SECONDS, Collected, Purger
from .reader import Pair, Reader
from .registry import Registry
from .rows import Artifact, SandboxRow
from .verify import Verifier
from .writer import Writer


def open_log(settings: Settings, *, create: bool = True) -> LogStore:
    """Open the log that the settings name.

    Every process that uses the log calls this once: the kernel on its worker thread, the server, the
    command line. An up-to-date log opens with one query.

    Parameters
    ----------
    settings
        ``data_dir``, ``database_url`` and ``blob_url`` are used.
    create
        Whether to make a log where there is none and to migrate an older one.

    Raises
    ------
    LogUnavailableError
        The directory cannot be written, the database does not answer or refuses; or there is no log and
        ``create`` is false.
    LogVersionError
        A newer version wrote the log.
    StorageFullError
        No space for a new log.
    SettingError
        ``database_url`` is no URL of SQLite or PostgreSQL.
    """
    database = Database.from_settings(settings)
    try:
        schema.ensure(database, create=create)
        return LogStore(database, open_blobs(settings))
    except BaseException:
        database.close()
        raise


class LogStore:
    """The log: sandboxes, their steps and results, artifacts.

    All methods block (each for well under a millisecond on SQLite) and may be called from any thread.
    Every method may raise `LogUnavailableError` (the database is gone; on PostgreSQL after trying for
    `dagger_kernel.log.database.RECONNECT_SECONDS`), `StorageFullError` and `LogIntegrityError` (the
    file is damaged); beyond these, what its docstring says.

    Attributes
    ----------
    blobs
        The blob store.
    """

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self.blobs = blobs
        self._database = database
        self._registry = Registry(database)
        self._writer = Writer(database, blobs)
        self._reader = Reader(database, blobs)
        self._purger = Purger(database, blobs)
        self._history = History(database, self._reader)

    # -- sandboxes

    def create_sandbox(
        self, owner: str, notebook: str = "", *, parent_step: str | None = None
    ) -> SandboxRow:
        """Make a sandbox; with ``parent_step`` it is a fork that continues from that step.

        Raises
        ------
        StepNotFoundError
            There is no step ``parent_step``.
        """
        return self.sandbox(self._registry.create_sandbox(owner, notebook, parent_step))

    def sandbox(self, sandbox_id: str) -> SandboxRow:
        """Return a sandbox by its id, or by a prefix of at least six digits that only one has.

        Raises
        ------
        SandboxNotFoundError
            None has it, or several have.
        """
        return self._reader.sandbox(sandbox_id)

    def sandboxes(
        self, owner: str | None = None, notebook: str | None = None, limit: int = 100
    ) -> list[SandboxRow]:
        """Return sandboxes (of an owner, of a notebook), the last active one first; no purged ones."""
        return self._reader.sandboxes(owner, notebook, limit)

    def latest_sandbox(self, owner: str, notebook: str) -> SandboxRow | None:
        """Return the sandbox a kernel started for a notebook resumes, or None.

        It is the one last active, leaving out those that a restart ended (`end_sandbox`).
        """
        rows = self._reader.sandboxes(owner, notebook, 1, state="open")
        return rows[0] if rows else None

    def end_sandbox(self, sandbox_id: str) -> None:
        """Note that the user's restart ended a sandbox: it is not resumed, but can be reopened by id.

        Raises
        ------
        SandboxNotFoundError
            There is no such sandbox.
        """
        self._registry.end_sandbox(sandbox_id)

    def start_session(self, sandbox_id: str) -> int:
        """Note that a kernel starts on a sandbox; return its session number, counted per owner.

        The kernel writes the number into each cell's ``payload["session"]``: `history` goes by it.

        Raises
        ------
        SandboxNotFoundError
            There is no such sandbox.
        """
        return self._registry.start_session(self.sandbox(sandbox_id).owner, sandbox_id)

    # -- writing

    def append(self, step: Step, *, on_tip: bool = False) -> Step:
        """Append a step and return it with its ``seq``.

        The number is given inside the transaction, so writers of several processes never share one and
        leave no gap. Appending the same step (by id) again returns the stored one: after an error whose
        outcome is unknown, repeating is safe.

        Parameters
        ----------
        step
            Its ``seq`` is ignored.
        on_tip
            Refuse the step unless its parent is the tip at this moment.

        Raises
        ------
        SandboxNotFoundError, StepNotFoundError
            There is no such sandbox, or no such parent (or target of a rewind).
        BlobError
            A file of an upload is not in the blob store.
        LogError
            The id is in the log with other content, the sandbox was purged, or (``on_tip``) somebody
            else appended meanwhile.
        """
        return self._writer.append(step, on_tip=on_tip)

    def finish(self, result: Result) -> Result:
        """Append a step's result and its artifacts, once, in one transaction.

        Artifacts are the ``files`` that have a blob. Outputs above 64 KiB go to the blob store.

        Raises
        ------
        StepNotFoundError
            There is no such step.
        BlobError
            A blob of a file or the layer is not in the blob store.
        LogError
            The step has a result already.
        """
        return self._writer.finish(result)

    # -- reading

    def step(self, step_id: str) -> Step:
        """Return a step.

        Raises
        ------
        StepNotFoundError
            There is no such step.
        """
        return self._reader.pair(step_id)[0]

    def result(self, step_id: str) -> Result | None:
        """Return a step's result; None: it has none (it runs, or a crash ended it).

        Raises
        ------
        StepNotFoundError
            There is no such step.
        BlobError
            Its outputs are large and their blob is missing or damaged.
        """
        return self._reader.pair(step_id)[1]

    def find(self, key: str) -> Pair | None:
        """Return a finished step of any sandbox that led to a key, None if there is none.

        The use cases ask with ``reuse = "shared"``: equal cells on equal states have equal keys.
        """
        return self._reader.find(key)

    def tip(self, sandbox_id: str) -> Step | None:
        """Return the step whose state the sandbox's next step continues; None: the base.

        It is the last step that has a result (those a crash ended are passed over) or is a rewind,
        whose state is its target's. A fork without steps continues its parent step.

        Raises
        ------
        SandboxNotFoundError
            There is no such sandbox.
        """
        return self._reader.tip(sandbox_id)

    def chain(self, step_id: str, *, outputs: bool = True) -> list[Pair]:
        """Return the steps from the base to a step, with their results, by one query.

        The walk goes by the step each state starts from: a rewind stands after its target, and what
        the rewind left behind is not in the chain.

        Parameters
        ----------
        step_id
            The last step.
        outputs
            Whether results carry their outputs; replay needs only their digest.

        Raises
        ------
        StepNotFoundError
            There is no such step.
        BlobError
            Outputs are in a blob that is missing or damaged.
        """
        return self._reader.chain(step_id, outputs=outputs)

    def chain_since(
        self, step_id: str, known: Container[str], *, outputs: bool = True
    ) -> list[Pair]:
        """Return the part of a chain after the last step the caller knows (by id).

        For a caller that keeps the chain: what it costs depends on the number of new steps, not on the
        length of the chain. Nothing known: the whole chain.

        Raises
        ------
        StepNotFoundError, BlobError
            Like `chain`.
        """
        return self._reader.chain_since(step_id, known, outputs=outputs)

    def steps(
        self, sandbox_id: str, *, after: int = 0, limit: int = 1000, outputs: bool = True
    ) -> list[Pair]:
        """Return steps of a sandbox in the order they were appended, from ``after`` (a seq) on."""
        return self._reader.steps(sandbox_id, after, limit, outputs=outputs)

    def artifacts(
        self, sandbox_id: str | None = None, step_id: str | None = None
    ) -> list[Artifact]:
        """Return exported and uploaded files of a sandbox or a step, with the step that made them."""
        return self._reader.artifacts(sandbox_id, step_id)

    def history(
        self,
        owner: str,
        kind: str = "tail",
        *,
        sandbox_id: str | None = None,
        session: int | None = 0,
        start: int | None = None,
        stop: int | None = None,
        n: int | None = None,
        pattern: str | None = None,
        unique: bool = False,
        output: bool = False,
    ) -> list[Entry]:
        """Return inputs of an owner's cells, the oldest first, in the form of Jupyter's history reply.

        An entry is ``(session, line, input)``, or ``(session, line, (input, output))`` with ``output``,
        where the output is the text of the cell's value or None. Session and line are the cells'
        ``payload["session"]`` and ``payload["execution_count"]``; cells with ``store_history`` false are
        left out.

        Parameters
        ----------
        owner
            Whose.
        kind
            ``tail``: the last ``n`` (default 10). ``range``: lines ``start`` (default 1) to before
            ``stop`` of ``session``, negative ones counted from its end. ``search``: the last ``n``
            (default: all) that the glob ``pattern`` (default ``*``) matches, each input once if ``unique``.
        sandbox_id
            Only those of one sandbox.
        session
            A session's number; 0 is the newest, -1 the one before it.

        Raises
        ------
        LogError
            There is no such kind.
        """
        where = self._history.where(owner, sandbox_id)
        if kind == "tail":
            return self._history.tail(where, 10 if n is None else max(0, n), output=output)
        if kind == "range":
            first = 1 if start is None else start
            return self._history.range(where, session or 0, first, stop, output=output)
        if kind == "search":
            return self._history.search(where, pattern or "*", n, unique=unique, output=output)
        raise LogError(f"There is no history of kind {kind!r}.")

    def audit(
        self,
        take: Callable[[Record], None],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        owner: str | None = None,
        sandbox_id: str | None = None,
    ) -> None:
        """Give a record of everything that was done to ``take``, the oldest first.

        Every record has ``time``, ``user``, ``sandbox``, ``notebook`` and ``event``: ``create``, ``start`` (of a
        kernel), ``cell``, ``upload``, ``mount``, ``rewind``, ``end`` (by a restart) or ``purge``, and what belongs to it.
        Of a purged sandbox there are its creation, its kernels' starts, and the purge.

        Parameters
        ----------
        since, until
            From this moment on, and before that one.
        owner, sandbox_id
            Only theirs.

        Raises
        ------
        LogUnavailableError
            The database went away in the middle.
        """
        Auditor(self._database).each(
            take, since=since, until=until, owner=owner, sandbox_id=sandbox_id
        )

    # -- upkeep

    def verify(self, sandbox_id: str | None = None, *, read_blobs: bool = True) -> list[str]:
        """Return what is wrong with the log (of a sandbox), one sentence each; nothing: it is intact.

        Parameters
        ----------
        sandbox_id
            Only this one; None: every sandbox, and SQLite's file.
        read_blobs
            Whether blobs are read and their digests compared, or only looked for.
        """
        verifier = Verifier(self._database, self.blobs, read_blobs=read_blobs)
        return list(verifier.problems(sandbox_id))

    def purge_sandbox(self, sandbox_id: str, *, by: str = "") -> None:
        """Delete a sandbox's steps, results, artifacts and blobs: the only deletion there is.

        A tombstone (an event that says when, by whom and how many steps) stays in its hash chain, and
        the sandbox can no longer be appended to. Only an administrator's command calls this.

        Raises
        ------
        SandboxNotFoundError
            There is no such sandbox.
        LogError
            Forks continue from it: purge those first.
        """
        self._purger.purge(sandbox_id, by)

    def collect_blobs(
        self, *, keep: Collection[str] = (), older_than: float = GRACE_SECONDS
    ) -> Collected:
        """Delete blobs nothing refers to, such as those of cells that a crash ended.

        Parameters
        ----------
        keep
            Digests that something besides the log refers to (an engine's recipes of bases).
        older_than
            Only blobs stored longer ago than this, in seconds: younger ones may belong to a result that
            is about to be appended.
        """
        return self._purger.collect(older_than, keep)

    def close(self) -> None:
        """Close the database's connections. The store cannot be used afterwards."""
        self._database.close()
