import pytest

from dagger_kernel.errors import SandboxNotFoundError, StepNotFoundError
from dagger_kernel.log import open_log

from .helpers import make_step, run_cell


def test_a_new_sandbox_is_empty(log):
    sandbox = log.create_sandbox("ada", "work/plot.ipynb")
    assert (sandbox.owner, sandbox.notebook, sandbox.steps, sandbox.state) == (
        "ada", "work/plot.ipynb", 0, "open",
    )  # fmt: skip
    assert sandbox.created == sandbox.last_activity
    assert log.tip(sandbox.id) is None
    assert log.sandbox(sandbox.id) == sandbox


def test_a_prefix_of_six_digits_names_a_sandbox(log):
    sandbox = log.create_sandbox("ada")
    assert log.sandbox(sandbox.id[:6]).id == sandbox.id
    assert log.sandbox(sandbox.id[:31]).id == sandbox.id
    for wrong in (
        sandbox.id[:5],
        "",
        "f" * 40,
        "%" * 8,
        sandbox.id + "0",
        "Ä" * 8,
        sandbox.id[:8].upper() + "G",
    ):
        with pytest.raises(SandboxNotFoundError):
            log.sandbox(wrong)


def test_a_prefix_of_two_sandboxes_names_none(log, monkeypatch):
    ids = iter(["abcdef" + "0" * 26, "abcdef" + "f" * 26])

    class FixedId:
        def __init__(self):
            self.hex = next(ids)

    monkeypatch.setattr("dagger_kernel.log.registry.uuid.uuid4", FixedId)
    first, second = log.create_sandbox("ada"), log.create_sandbox("ada")
    with pytest.raises(SandboxNotFoundError):
        log.sandbox("abcdef")
    assert log.sandbox("abcdef0").id == first.id
    assert log.sandbox("abcdeff").id == second.id


def test_the_last_active_is_listed_first(log):
    first, second = log.create_sandbox("ada", "a"), log.create_sandbox("ada", "b")
    other = log.create_sandbox("bob", "a")
    assert [one.id for one in log.sandboxes()] == [other.id, second.id, first.id]
    run_cell(log, first)
    assert [one.id for one in log.sandboxes("ada")] == [first.id, second.id]
    assert [one.id for one in log.sandboxes(notebook="a")] == [first.id, other.id]
    assert [one.id for one in log.sandboxes(limit=1)] == [first.id]
    assert log.sandboxes("ada", "a")[0].steps == 1


def test_a_restart_ends_a_sandbox_for_resuming_only(log):
    assert log.latest_sandbox("ada", "n") is None
    first = log.create_sandbox("ada", "n")
    assert log.latest_sandbox("ada", "n").id == first.id
    log.end_sandbox(first.id)
    log.end_sandbox(first.id)  # told twice, done once
    assert log.latest_sandbox("ada", "n") is None
    assert log.sandbox(first.id).state == "ended"
    second = log.create_sandbox("ada", "n")
    run_cell(log, first)  # reopened by its id
    assert log.latest_sandbox("ada", "n").id == second.id
    assert log.latest_sandbox("bob", "n") is None
    with pytest.raises(SandboxNotFoundError):
        log.end_sandbox("0" * 32)
    assert log.verify() == []


def test_a_fork_continues_its_parent_step(log, sandbox):
    step = run_cell(log, sandbox)
    run_cell(log, sandbox, step)
    fork = log.create_sandbox("bob", "copy", parent_step=step.id)
    assert fork.parent_step == step.id
    assert log.tip(fork.id) == step
    own = run_cell(log, fork, step)
    assert log.tip(fork.id) == own
    assert own.seq == 1
    assert [one.id for one, _ in log.chain(own.id)] == [step.id, own.id]
    with pytest.raises(StepNotFoundError):
        log.create_sandbox("bob", parent_step="0" * 32)


def test_odd_names_survive(log):
    name = "caf\u00e9 \udce9 \x00 \U0001f600 %_'\"\\.ipynb"
    sandbox = log.create_sandbox(name, name)
    assert log.sandboxes(name, name)[0] == sandbox
    assert sandbox.notebook == name
    assert log.latest_sandbox(name, name).id == sandbox.id


def test_a_clock_set_back_does_not_make_a_sandbox_older(log, sandbox):
    from datetime import UTC, datetime

    log.append(make_step(sandbox, created=datetime(2001, 1, 1, tzinfo=UTC)))
    assert log.sandbox(sandbox.id).last_activity >= sandbox.last_activity
    assert log.verify() == []


def test_what_was_logged_is_there_after_reopening(log, sandbox, settings):
    step = run_cell(log, sandbox)
    log.close()
    again = open_log(settings)
    try:
        assert again.tip(sandbox.id) == step
        assert again.sandbox(sandbox.id).steps == 1
    finally:
        again.close()


def test_sessions_are_counted_per_owner(log):
    first, second = log.create_sandbox("ada"), log.create_sandbox("bob")
    assert [log.start_session(first.id) for _ in range(3)] == [1, 2, 3]
    assert log.start_session(second.id) == 1
    with pytest.raises(SandboxNotFoundError):
        log.start_session("0" * 32)
