import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import pytest

from dagger_kernel.errors import (
    BlobError,
    LogError,
    SandboxNotFoundError,
    StepNotFoundError,
)
from dagger_kernel.steps import FileChange, Kind, Language, Limits, Status

from .helpers import make_file, make_result, make_step, run_cell, run_cells


def test_a_step_comes_back_as_it_was(log, sandbox):
    first = run_cell(log, sandbox)
    step = make_step(
        sandbox,
        first,
        language=Language.BASH,
        source="echo 'x'\n\ttab \\ \"quoted\"",
        payload={"execution_count": 4, "cell_id": "abc", "nested": {"a": [1, 2.5, None, True]}},
        limits=Limits(cpu_seconds=1.5, memory_bytes=1 << 40),
    )
    stored = log.append(step)
    assert stored == dataclasses.replace(step, seq=2)
    assert log.step(step.id) == stored
    assert log.result(step.id) is None


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "a\x00b",
        "\ud800",
        "x = '\udcff'",
        "\ufeff",
        "\u2028\u2029",
        "\U0001f600",
        "\\u0000",
        "\r\n",
    ],
)
def test_no_text_is_refused_or_changed(log, sandbox, text):
    file = make_file(log, f"d/{text}.txt", b"1", skipped=text, mime=text)
    step = log.append(make_step(sandbox, source=text, payload={text: text}))
    result = make_result(
        step,
        reason=text,
        outputs=[{"output_type": "stream", "name": "stdout", "text": text}],
        state_report={text: [text]},
        usage={text: 1},
        answers=[text, None],
        files=[file],
    )
    assert log.finish(result) == result
    assert log.step(step.id).source == text
    assert log.step(step.id).payload == {text: text}
    assert log.result(step.id) == result
    assert log.artifacts(step_id=step.id)[0].path == f"d/{text}.txt"
    assert log.verify() == []


def test_a_result_comes_back_as_it_was(log, sandbox):
    step = log.append(make_step(sandbox))
    result = make_result(
        step,
        status=Status.LIMIT,
        reason="memory",
        execution_count=None,
        exit_code=-9,
        truncated=True,
        files=[
            make_file(log, "plot.png", b"png", mime="image/png", mode=0o600),
            FileChange(path="gone.txt", kind="deleted"),
            FileChange(path="big.bin", kind="new", size=1 << 40, skipped="too large"),
        ],
        layer=log.blobs.put(b"layer"),
    )
    assert log.finish(result) == result
    assert log.result(step.id) == result
    (artifact,) = log.artifacts(sandbox.id)
    assert (artifact.path, artifact.size, artifact.mime, artifact.mode, artifact.role) == (
        "plot.png", 3, "image/png", 0o600, "export",
    )  # fmt: skip
    assert (artifact.step_id, artifact.seq) == (step.id, 1)


def test_what_has_no_json_form_does_not_lose_a_result(log, sandbox):
    step = log.append(make_step(sandbox))
    odd = {"nan": float("nan"), "inf": [float("inf")], 3: {1, 2}.__class__.__name__}
    log.finish(make_result(step, outputs=[{"output_type": "display_data", "data": odd}]))
    (output,) = log.result(step.id).outputs
    assert output["data"] == {"nan": None, "inf": [None], "3": "set"}
    assert log.verify() == []


@pytest.mark.parametrize("size", [64 * 1024 - 200, 64 * 1024 + 1, 1 << 20])
def test_large_outputs_lie_in_the_blob_store(log, sandbox, raw, size):
    step = log.append(make_step(sandbox))
    result = make_result(
        step, outputs=[{"output_type": "stream", "name": "stdout", "text": "x" * size}]
    )
    log.finish(result)
    assert log.result(step.id) == result
    assert log.chain(step.id)[0][1].outputs == result.outputs
    assert log.chain(step.id, outputs=False)[0][1].outputs == []
    (row,) = raw("SELECT outputs, outputs_digest FROM result")
    assert (row[0] is None) == (size > 64 * 1024)
    assert log.blobs.has(row[1]) == (size > 64 * 1024)
    if row[0] is None:
        log.blobs.delete(row[1])
        with pytest.raises(BlobError):
            log.result(step.id)
        assert log.chain(step.id, outputs=False)[0][1].status is Status.OK


def test_times_are_utc(log, sandbox):
    away = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    step = log.append(make_step(sandbox, created=away))
    assert step.created == away
    assert step.created.tzinfo is UTC
    assert log.step(step.id) == step


def test_a_step_has_one_result(log, sandbox):
    step = run_cell(log, sandbox)
    with pytest.raises(LogError, match="has a result already"):
        log.finish(make_result(step))
    with pytest.raises(StepNotFoundError):
        log.finish(make_result("0" * 32))
    assert log.verify() == []


def test_a_step_needs_its_sandbox_and_parent(log, sandbox):
    with pytest.raises(SandboxNotFoundError):
        log.append(make_step("0" * 32))
    with pytest.raises(StepNotFoundError):
        log.append(make_step(sandbox, "1" * 32))
    with pytest.raises(StepNotFoundError):
        log.append(make_step(sandbox, kind=Kind.REWIND, payload={"to": "2" * 32}))
    with pytest.raises(StepNotFoundError):
        log.step("3" * 32)
    with pytest.raises(StepNotFoundError):
        log.chain("3" * 32)
    with pytest.raises(StepNotFoundError):
        log.chain_since("3" * 32, ())
    assert log.steps(sandbox.id) == []
    assert run_cell(log, sandbox).seq == 1  # a refused step takes no number


def test_appending_the_same_step_again_is_harmless(log, sandbox):
    step = make_step(sandbox)
    first = log.append(step)
    run_cell(log, sandbox, first)
    assert log.append(step) == first
    assert log.sandbox(sandbox.id).steps == 2
    with pytest.raises(LogError, match="other content"):
        log.append(dataclasses.replace(step, source="something else"))
    assert log.verify() == []


def test_an_append_on_the_tip_is_refused_when_the_tip_moved(log, sandbox):
    first = log.append(make_step(sandbox), on_tip=True)
    log.finish(make_result(first))
    second = log.append(make_step(sandbox, first), on_tip=True)
    again = log.append(make_step(sandbox, first), on_tip=True)  # the second has no result yet
    log.finish(make_result(again))
    with pytest.raises(LogError, match="moved on"):
        log.append(make_step(sandbox, first), on_tip=True)
    with pytest.raises(LogError, match="moved on"):
        log.append(make_step(sandbox, second), on_tip=True)
    fork = log.create_sandbox("bob", parent_step=first.id)
    with pytest.raises(LogError, match="moved on"):
        log.append(make_step(fork), on_tip=True)
    log.append(make_step(fork, first), on_tip=True)


def test_the_tip_passes_over_steps_that_a_crash_ended(log, sandbox):
    first = run_cell(log, sandbox)
    lost = log.append(make_step(sandbox, first))
    assert log.tip(sandbox.id) == first
    third = run_cell(log, sandbox, first)
    assert log.tip(sandbox.id) == third
    assert [one.id for one, _ in log.chain(third.id)] == [first.id, third.id]
    assert [one.id for one, _ in log.steps(sandbox.id)] == [first.id, lost.id, third.id]
    with pytest.raises(SandboxNotFoundError):
        log.tip("0" * 32)


def test_a_rewind_continues_its_target(log, sandbox):
    first, second, third = run_cells(log, sandbox, 3)
    rewind = log.append(
        make_step(sandbox, third, kind=Kind.REWIND, payload={"to": first.id}, key=first.key)
    )
    assert log.tip(sandbox.id) == rewind
    fourth = run_cell(log, sandbox, rewind)
    assert [one.id for one, _ in log.chain(fourth.id)] == [first.id, rewind.id, fourth.id]
    to_base = log.append(make_step(sandbox, fourth, kind=Kind.REWIND, payload={"to": None}))
    assert [one.id for one, _ in log.chain(to_base.id)] == [to_base.id]
    assert [one.seq for one, _ in log.steps(sandbox.id)] == [1, 2, 3, 4, 5, 6]
    bare = log.append(make_step(sandbox, second, kind=Kind.REWIND))
    assert [one.id for one, _ in log.chain(bare.id)] == [first.id, second.id, bare.id]
    assert log.verify() == []


def test_uploads_are_artifacts_of_their_step(log, sandbox):
    digest = log.blobs.put(b"a,b\n1,2\n")
    files = [{"path": "data.csv", "blob": digest, "size": 8, "mode": 0o644}]
    step = log.append(make_step(sandbox, kind=Kind.UPLOAD, payload={"files": files}))
    (artifact,) = log.artifacts(sandbox.id)
    assert (artifact.role, artifact.path, artifact.blob) == ("upload", "data.csv", digest)
    assert artifact.step_id == step.id
    missing = [{"path": "x", "blob": "0" * 64, "size": 1}]
    with pytest.raises(BlobError):
        log.append(make_step(sandbox, kind=Kind.UPLOAD, payload={"files": missing}))
    assert log.verify() == []


def test_a_result_refers_only_to_stored_blobs(log, sandbox):
    step = log.append(make_step(sandbox))
    with pytest.raises(BlobError):
        log.finish(make_result(step, files=[FileChange(path="x", kind="new", blob="0" * 64)]))
    with pytest.raises(BlobError):
        log.finish(make_result(step, layer="0" * 64))
    assert log.result(step.id) is None
    log.finish(make_result(step))


def test_steps_are_paged(log, sandbox):
    steps = run_cells(log, sandbox, 7)
    page = log.steps(sandbox.id, after=2, limit=3)
    assert [one.seq for one, _ in page] == [3, 4, 5]
    assert page[0] == (steps[2], log.result(steps[2].id))
    assert log.steps(sandbox.id, after=7) == []


def test_a_chain_is_read_from_what_is_known(log, sandbox):
    steps = run_cells(log, sandbox, 50)
    whole = log.chain(steps[-1].id)
    assert [one for one, _ in whole] == steps
    assert log.chain_since(steps[-1].id, ()) == whole
    for known in (0, 1, 30, 44, 45, 46, 48, 49):
        found = log.chain_since(steps[-1].id, {steps[known].id})
        assert found == whole[known + 1 :]


def test_artifacts_are_found_by_sandbox_and_step(log, sandbox):
    steps = []
    for number in range(3):
        step = log.append(make_step(sandbox))
        file = make_file(log, "same.txt", f"{number // 2}".encode())
        log.finish(make_result(step, files=[file]))
        steps.append(step)
    other = log.create_sandbox("bob")
    assert [one.step_id for one in log.artifacts()] == [step.id for step in steps]
    assert [one.step_id for one in log.artifacts(step_id=steps[1].id)] == [steps[1].id]
    assert log.artifacts(other.id) == []
    assert len({one.blob for one in log.artifacts(sandbox.id)}) == 2


def test_a_finished_step_is_found_by_its_key(log, sandbox):
    key = "k" * 64
    assert log.find(key) is None
    log.append(make_step(sandbox, key=key))
    assert log.find(key) is None  # not finished
    other = log.create_sandbox("bob")
    step = run_cell(log, other, key=key)
    log.append(make_step(sandbox, kind=Kind.REWIND, payload={"to": step.id}, key=key))
    run_cell(log, sandbox, key=key)
    assert log.find(key) == (step, log.result(step.id))
