"""The tables of the log, the same on SQLite and PostgreSQL.

Every value is a number or ASCII text: whatever a user may have typed or printed is stored as
canonical JSON text (`dagger_kernel.steps.canonical_json`), because PostgreSQL's text refuses NUL,
neither database takes lone surrogates, and a PostgreSQL database need not be UTF-8. Times are
ISO 8601 text in UTC with microseconds: equal on both databases, sortable, and
``created::timestamptz`` in SQL.

``step``, ``result``, ``event``, ``artifact``, ``sandbox`` and ``kernel_session`` are append-only:
triggers (see the first migration) refuse UPDATE and DELETE. ``head`` is the one mutable row of a
sandbox. Everything in it can be computed from the others; it makes appending constant-time, it is the
row a PostgreSQL transaction locks, and it shows when the newest rows of a chain were cut off.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    or_,
)

from ..steps import Kind

SCHEMA_VERSION = "0001"
"""The newest migration; a test keeps it equal to the migrations' head."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

sandbox = Table(
    "sandbox",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("notebook", Text, nullable=False),
    Column("created", String(32), nullable=False),
    # No foreign key: sandbox and step would need each other; append checks it instead.
    Column("parent_step", String(32)),
    Column("hash", String(64), nullable=False),
    Index(None, "owner", "notebook"),
    Index(None, "parent_step"),
)

head = Table(
    "head",
    metadata,
    Column("sandbox_id", ForeignKey("sandbox.id"), primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("entry", Integer, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("state", String(8), nullable=False),
    Column("updated", String(32), nullable=False),
)

step = Table(
    "step",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("sandbox_id", ForeignKey("sandbox.id"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("parent_id", ForeignKey("step.id")),
    # The step whose state this one starts from: a rewind's target, else the parent.
    Column("origin_id", ForeignKey("step.id")),
    Column("kind", String(16), nullable=False),
    Column("language", String(16), nullable=False),
    Column("source", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("limits", Text, nullable=False),
    Column("nonce", String(64), nullable=False),
    Column("base_digest", Text, nullable=False),
    Column("runner_digest", Text, nullable=False),
    Column("engine", String(32), nullable=False),
    Column("key", String(64), nullable=False),
    Column("created", String(32), nullable=False),
    # For the history: number of the kernel's start and of the cell; null: not in the history.
    Column("session", Integer),
    Column("line", Integer),
    Column("entry", Integer, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("sandbox_id", "seq"),
    UniqueConstraint("sandbox_id", "entry"),
    Index(None, "sandbox_id", "session", "seq"),
    Index(None, "parent_id"),
    Index(None, "origin_id"),
    Index(None, "key"),
)

result = Table(
    "result",
    metadata,
    Column("step_id", ForeignKey("step.id"), primary_key=True),
    Column("sandbox_id", ForeignKey("sandbox.id"), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("execution_count", Integer),
    Column("exit_code", Integer, nullable=False),
    # The outputs' text, or null where it is large and lies in the blob store under its digest.
    Column("outputs", Text),
    Column("outputs_digest", String(64), nullable=False),
    Column("usage", Text, nullable=False),
    Column("state_report", Text, nullable=False),
    Column("files", Text, nullable=False),
    Column("answers", Text, nullable=False),
    Column("layer", String(64)),
    Column("truncated", Boolean(create_constraint=False), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("finished", String(32), nullable=False),
    Column("entry", Integer, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("sandbox_id", "entry"),
)

event = Table(
    "event",
    metadata,
    Column("sandbox_id", ForeignKey("sandbox.id"), primary_key=True),
    Column("entry", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("payload", Text, nullable=False),
    Column("created", String(32), nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)

blob = Table(
    "blob",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("location", Text, nullable=False),
)

artifact = Table(
    "artifact",
    metadata,
    Column("step_id", ForeignKey("step.id"), primary_key=True),
    Column("role", String(8), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("sandbox_id", ForeignKey("sandbox.id"), nullable=False),
    Column("path", Text, nullable=False),
    Column("blob", ForeignKey("blob.digest"), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mime", Text, nullable=False),
    Column("mode", Integer, nullable=False),
    Index(None, "sandbox_id"),
    Index(None, "blob"),
)

kernel_session = Table(
    "kernel_session",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("sandbox_id", ForeignKey("sandbox.id"), nullable=False),
    Column("started", String(32), nullable=False),
)


def is_settled() -> ColumnElement[bool]:
    """Return the condition that a step (joined with its result) is one that later steps continue.

    A step without a result was ended by a crash; a rewind needs none, as nothing is run for it.
    """
    return or_(result.c.step_id.is_not(None), step.c.kind == str(Kind.REWIND))
