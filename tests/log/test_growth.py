"""Step 10,000 costs what step 10 costs: counted in statements and rows read, not in seconds."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, insert, text, update

from dagger_kernel.log import open_log
from dagger_kernel.log import tables as t
from dagger_kernel.log.heads import place
from dagger_kernel.log.rows import dump, result_values, step_values
from dagger_kernel.log.writer import digest_bytes

from .helpers import make_result, make_step

MANY = 10_000


def grow(log, sandbox, count):
    """Insert a line of cells at once, as the writer would one by one; return the last step's id."""
    outputs = dump([{"output_type": "stream", "name": "stdout", "text": "hello\n"}])
    extra = {
        "outputs": outputs,
        "outputs_digest": digest_bytes(outputs.encode()),
        "sandbox_id": sandbox.id,
    }
    moment = datetime.now(UTC) - timedelta(hours=1)
    steps, results, parent = [], [], None
    with log._database._writer.begin() as connection:
        head = (
            connection.execute(t.head.select().where(t.head.c.sandbox_id == sandbox.id))
            .mappings()
            .one()
        )
        head = dict(head)
        for seq in range(1, count + 1):
            step = make_step(
                sandbox, parent, seq=seq, created=moment,
                payload={"session": 1 + seq // 1000, "execution_count": seq},
            )  # fmt: skip
            for table, rows, values in (
                ("step", steps, step_values(step)),
                ("result", results, result_values(make_result(step, finished=moment)) | extra),
            ):
                placed = place(table, values, head)
                head["entry"], head["hash"] = placed["entry"], placed["hash"]
                rows.append(placed)
            parent = step.id
        connection.execute(insert(t.step), steps)
        connection.execute(insert(t.result), results)
    # The head goes forward one entry at a time, triggers see to that: past them here.
    with log._database._writer.begin() as connection:
        if connection.dialect.name == "sqlite":
            saved = connection.scalar(
                text("SELECT sql FROM sqlite_master WHERE name = 'head_forward'")
            )
            connection.execute(text("DROP TRIGGER head_forward"))
        else:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
        end = {"seq": count, "entry": head["entry"], "hash": head["hash"]}
        connection.execute(update(t.head).where(t.head.c.sandbox_id == sandbox.id).values(**end))
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(saved)
        else:
            connection.execute(text("ANALYZE"))
    return parent


class Cost:
    """Counts the statements and the work of a block on one store."""

    def __init__(self, log):
        self.engine = log._database.engine
        self.statements = 0
        self.work = 0

    def __enter__(self):
        event.listen(self.engine, "before_cursor_execute", self._statement)
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine, "checkout", self._watch)
        else:
            event.listen(self.engine, "begin", self._before)
            event.listen(self.engine, "commit", self._after)
        return self

    def __exit__(self, *_):
        event.remove(self.engine, "before_cursor_execute", self._statement)
        if self.engine.dialect.name == "sqlite":
            event.remove(self.engine, "checkout", self._watch)
            with self.engine.connect() as connection:
                connection.connection.driver_connection.set_progress_handler(None, 0)
        else:
            event.remove(self.engine, "begin", self._before)
            event.remove(self.engine, "commit", self._after)

    def _statement(self, *_):
        self.statements += 1

    def _watch(self, connection, *_):
        # SQLite counts the instructions of its virtual machine: all work is some.
        connection.set_progress_handler(self._instruction, 1)

    def _instruction(self):
        self.work += 1
        return 0

    def _before(self, connection):
        self.work -= self._rows(connection)

    def _after(self, connection):
        self.work += self._rows(connection)

    @staticmethod
    def _rows(connection):
        # PostgreSQL counts the rows it read and has not yet told its statistics.
        cursor = connection.connection.driver_connection.execute(
            "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) "
            "FROM pg_stat_xact_user_tables"
        )
        return int(cursor.fetchone()[0] or 0)


def costs(log, sandbox, parent):
    """Return what a cell costs: append, finish, tip, the chain's end, a history's tail."""
    found = {}
    # Once to prepare statements and pages.
    for _ in range(2):
        step = make_step(sandbox, parent, payload={"session": 20, "execution_count": 1})
        with Cost(log) as found["append"]:
            log.append(step)
        with Cost(log) as found["finish"]:
            log.finish(make_result(step))
        with Cost(log) as found["tip"]:
            assert log.tip(sandbox.id).id == step.id
        with Cost(log) as found["chain_since"]:
            assert len(log.chain_since(step.id, {parent})) == 1
        with Cost(log) as found["steps"]:
            assert len(log.steps(sandbox.id, after=step.seq, limit=10)) <= 10
        with Cost(log) as found["sandboxes"]:
            log.latest_sandbox("owner", "notebook.ipynb")
        parent = step.id
    return {name: (cost.statements, cost.work) for name, cost in found.items()}


@pytest.fixture
def grown(make_settings):
    """A log with 10 steps and one with 10,000, each with the last step."""
    found = []
    for count in (10, MANY):
        log = open_log(make_settings())
        sandbox = log.create_sandbox("owner", "notebook.ipynb")
        found.append((log, sandbox, grow(log, sandbox, count)))
    yield found
    for log, _, _ in found:
        log.close()


def test_a_cell_costs_the_same_in_a_long_log(grown):
    few, many = (costs(*one) for one in grown)
    for name, (statements, work) in many.items():
        assert statements == few[name][0], (name, few, many)
        assert work > 0
        # A deeper index costs a few instructions; whatever grew with the log would be thousands.
        assert work <= few[name][1] * 1.5 + 50, (name, few, many)
    assert few["append"][0] <= 6
    assert few["finish"][0] <= 6
    assert few["tip"][0] <= 2

    # And the long log is whole, and read by one query.
    log, sandbox, last = grown[1]
    with Cost(log) as cost:
        chain = log.chain(last)
    assert cost.statements <= 2
    assert [step.seq for step, _ in chain] == list(range(1, MANY + 1))
    with Cost(log) as cost:
        assert log.chain_since(last, ()) == chain
    assert cost.statements <= 20
    assert log.verify() == []
    lines = log.history("owner", "range", session=10, start=MANY - 3)
    assert [line for _, line, _ in lines] == [MANY - 3, MANY - 2, MANY - 1]
