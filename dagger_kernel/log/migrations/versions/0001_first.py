"""The first schema: tables and the triggers that make them append-only.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("sandbox", "step", "result", "event", "artifact", "kernel_session")

# What a purge deletes. Its tombstone must stand in the log before a row can go.
PURGEABLE = ("step", "result", "artifact")

# Two rows are the same row when they agree on one of these: SQLite's INSERT OR REPLACE would
# otherwise delete the old row without asking the DELETE trigger.
IDENTITIES = {
    "sandbox": ("id = NEW.id",),
    "step": (
        "id = NEW.id",
        "sandbox_id = NEW.sandbox_id AND seq = NEW.seq",
        "sandbox_id = NEW.sandbox_id AND entry = NEW.entry",
    ),
    "result": ("step_id = NEW.step_id", "sandbox_id = NEW.sandbox_id AND entry = NEW.entry"),
    "event": ("sandbox_id = NEW.sandbox_id AND entry = NEW.entry",),
    "artifact": ("step_id = NEW.step_id AND role = NEW.role AND number = NEW.number",),
    "kernel_session": ("owner = NEW.owner AND number = NEW.number",),
}

REFUSED = "the log is append-only"
REFUSED_HEAD = "the head of a sandbox only moves forward"


def upgrade() -> None:
    """Make the tables and triggers."""
    _tables()
    if op.get_bind().dialect.name == "sqlite":
        _sqlite_triggers()
    else:
        _postgresql_triggers()
        _postgresql_queue()


def _postgresql_queue() -> None:
    """Make the queue of running places (`dagger_kernel.log.slots`): a sequence and two functions.

    One class of advisory locks per engine; lock 0 of a class orders those who enter.
    """
    op.execute("CREATE SEQUENCE dagger_kernel_ticket AS integer MINVALUE 1 CYCLE")
    op.execute("""
        CREATE FUNCTION dagger_kernel_ahead(engine integer, ticket integer) RETURNS integer
        LANGUAGE sql AS $$
            SELECT count(*)::integer FROM pg_locks
            WHERE locktype = 'advisory' AND granted AND objsubid = 2
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND classid = engine::oid AND objid > 0::oid AND objid < ticket::oid
        $$
    """)
    op.execute("""
        CREATE FUNCTION dagger_kernel_enter(
            engine integer, places integer, OUT ticket integer, OUT others integer
        ) LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock(engine, 0);
            others := dagger_kernel_ahead(engine, 2147483647);
            IF others < places THEN
                ticket := nextval('dagger_kernel_ticket');
                PERFORM pg_advisory_lock(engine, ticket);
            END IF;
        END $$
    """)


def downgrade() -> None:
    """Drop everything (their triggers go with the tables)."""
    tables = (
        "kernel_session", "artifact", "blob", "event", "result", "step", "head", "sandbox",
    )  # fmt: skip
    for table in tables:
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        for function in ("refuse", "guard", "forward"):
            op.execute(f"DROP FUNCTION dagger_kernel_{function}()")
        op.execute("DROP FUNCTION dagger_kernel_enter(integer, integer)")
        op.execute("DROP FUNCTION dagger_kernel_ahead(integer, integer)")
        op.execute("DROP SEQUENCE dagger_kernel_ticket")


def _tables() -> None:
    op.create_table(
        "sandbox",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("notebook", sa.Text, nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("parent_step", sa.String(32)),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sandbox"),
    )
    op.create_index("ix_sandbox_owner_notebook", "sandbox", ["owner", "notebook"])
    op.create_index("ix_sandbox_parent_step", "sandbox", ["parent_step"])
    op.create_table(
        "head",
        sa.Column("sandbox_id", sa.String(32), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("entry", sa.Integer, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("updated", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("sandbox_id", name="pk_head"),
        sa.ForeignKeyConstraint(["sandbox_id"], ["sandbox.id"], name="fk_head_sandbox_id"),
    )
    op.create_table(
        "step",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("sandbox_id", sa.String(32), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("parent_id", sa.String(32)),
        sa.Column("origin_id", sa.String(32)),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("language", sa.String(16), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("limits", sa.Text, nullable=False),
        sa.Column("nonce", sa.String(64), nullable=False),
        sa.Column("base_digest", sa.Text, nullable=False),
        sa.Column("runner_digest", sa.Text, nullable=False),
        sa.Column("engine", sa.String(32), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("session", sa.Integer),
        sa.Column("line", sa.Integer),
        sa.Column("entry", sa.Integer, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_step"),
        sa.ForeignKeyConstraint(["sandbox_id"], ["sandbox.id"], name="fk_step_sandbox_id"),
        sa.ForeignKeyConstraint(["parent_id"], ["step.id"], name="fk_step_parent_id"),
        sa.ForeignKeyConstraint(["origin_id"], ["step.id"], name="fk_step_origin_id"),
        sa.UniqueConstraint("sandbox_id", "seq", name="uq_step_sandbox_id_seq"),
        sa.UniqueConstraint("sandbox_id", "entry", name="uq_step_sandbox_id_entry"),
    )
    op.create_index("ix_step_key", "step", ["key"])
    op.create_index("ix_step_sandbox_id_session_seq", "step", ["sandbox_id", "session", "seq"])
    op.create_index("ix_step_parent_id", "step", ["parent_id"])
    op.create_index("ix_step_origin_id", "step", ["origin_id"])
    op.create_table(
        "result",
        sa.Column("step_id", sa.String(32), nullable=False),
        sa.Column("sandbox_id", sa.String(32), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("execution_count", sa.Integer),
        sa.Column("exit_code", sa.Integer, nullable=False),
        sa.Column("outputs", sa.Text),
        sa.Column("outputs_digest", sa.String(64), nullable=False),
        sa.Column("usage", sa.Text, nullable=False),
        sa.Column("state_report", sa.Text, nullable=False),
        sa.Column("files", sa.Text, nullable=False),
        sa.Column("answers", sa.Text, nullable=False),
        sa.Column("layer", sa.String(64)),
        sa.Column("truncated", sa.Boolean(create_constraint=False), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("finished", sa.String(32), nullable=False),
        sa.Column("entry", sa.Integer, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("step_id", name="pk_result"),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name="fk_result_step_id"),
        sa.ForeignKeyConstraint(["sandbox_id"], ["sandbox.id"], name="fk_result_sandbox_id"),
        sa.UniqueConstraint("sandbox_id", "entry", name="uq_result_sandbox_id_entry"),
    )
    op.create_table(
        "event",
        sa.Column("sandbox_id", sa.String(32), nullable=False),
        sa.Column("entry", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("sandbox_id", "entry", name="pk_event"),
        sa.ForeignKeyConstraint(["sandbox_id"], ["sandbox.id"], name="fk_event_sandbox_id"),
    )
    op.create_table(
        "blob",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_blob"),
    )
    op.create_table(
        "artifact",
        sa.Column("step_id", sa.String(32), nullable=False),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("sandbox_id", sa.String(32), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("blob", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("mime", sa.Text, nullable=False),
        sa.Column("mode", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("step_id", "role", "number", name="pk_artifact"),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name="fk_artifact_step_id"),
        sa.ForeignKeyConstraint(["sandbox_id"], ["sandbox.id"], name="fk_artifact_sandbox_id"),
        sa.ForeignKeyConstraint(["blob"], ["blob.digest"], name="fk_artifact_blob"),
    )
    op.create_index("ix_artifact_sandbox_id", "artifact", ["sandbox_id"])
    op.create_index("ix_artifact_blob", "artifact", ["blob"])
    op.create_table(
        "kernel_session",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("sandbox_id", sa.String(32), nullable=False),
        sa.Column("started", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("owner", "number", name="pk_kernel_session"),
        sa.ForeignKeyConstraint(
            ["sandbox_id"], ["sandbox.id"], name="fk_kernel_session_sandbox_id"
        ),
    )


def _sqlite_triggers() -> None:
    purged = "EXISTS (SELECT 1 FROM event WHERE sandbox_id = OLD.sandbox_id AND kind = 'purge')"
    for table in APPEND_ONLY:
        refuse = f"BEGIN SELECT RAISE(ABORT, '{table}: {REFUSED}'); END"
        when = f"WHEN NOT {purged}" if table in PURGEABLE else ""
        same = " OR ".join(f"({identity})" for identity in IDENTITIES[table])
        op.execute(f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}")
        op.execute(f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {when} {refuse}")
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "  # noqa: S608
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {refuse}"
        )
    refuse = f"BEGIN SELECT RAISE(ABORT, '{REFUSED_HEAD}'); END"
    op.execute(
        "CREATE TRIGGER head_forward BEFORE UPDATE ON head "
        "WHEN NEW.sandbox_id <> OLD.sandbox_id OR NEW.entry <> OLD.entry + 1 "
        f"OR NEW.seq < OLD.seq {refuse}"
    )
    op.execute(f"CREATE TRIGGER head_no_delete BEFORE DELETE ON head {refuse}")
    op.execute(
        "CREATE TRIGGER head_no_replace BEFORE INSERT ON head "  # noqa: S608
        f"WHEN EXISTS (SELECT 1 FROM head WHERE sandbox_id = NEW.sandbox_id) {refuse}"
    )


def _postgresql_triggers() -> None:
    op.execute(f"""
        CREATE FUNCTION dagger_kernel_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '%: {REFUSED}', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
        END $$
    """)
    op.execute(f"""
        CREATE FUNCTION dagger_kernel_guard() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT 1 FROM event WHERE sandbox_id = OLD.sandbox_id AND kind = 'purge') THEN
                RETURN OLD;
            END IF;
            RAISE EXCEPTION '%: {REFUSED}', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
        END $$
    """)  # noqa: S608 - nothing in it comes from outside
    op.execute(f"""
        CREATE FUNCTION dagger_kernel_forward() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.sandbox_id <> OLD.sandbox_id OR NEW.entry <> OLD.entry + 1
                OR NEW.seq < OLD.seq THEN
                RAISE EXCEPTION '{REFUSED_HEAD}' USING ERRCODE = 'restrict_violation';
            END IF;
            RETURN NEW;
        END $$
    """)
    for table in APPEND_ONLY:
        delete = "guard" if table in PURGEABLE else "refuse"
        op.execute(
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION dagger_kernel_refuse()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION dagger_kernel_{delete}()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION dagger_kernel_refuse()"
        )
    op.execute(
        "CREATE TRIGGER head_forward BEFORE UPDATE ON head "
        "FOR EACH ROW EXECUTE FUNCTION dagger_kernel_forward()"
    )
    op.execute(
        "CREATE TRIGGER head_no_delete BEFORE DELETE ON head "
        "FOR EACH ROW EXECUTE FUNCTION dagger_kernel_refuse()"
    )
    op.execute(
        "CREATE TRIGGER head_no_truncate BEFORE TRUNCATE ON head "
        "FOR EACH STATEMENT EXECUTE FUNCTION dagger_kernel_refuse()"
    )
