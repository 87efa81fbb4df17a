"""A model of the log in a few dictionaries, and hypothesis trying to make the two differ."""

import os

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dagger_kernel.log import SandboxLock, advisory, open_log
from dagger_kernel.steps import Kind

from .helpers import forked, make_file, make_result, make_step, run_cell

TEXT = st.text(st.characters(), max_size=20)  # all of Unicode, surrogates and NUL too


def append_apart(writer, settings, sandbox_id, count):
    """Another kernel: take the lock, continue the tip, let go."""
    advisory.close_sessions()
    log = open_log(settings)
    lock = SandboxLock(settings, sandbox_id)
    for _ in range(count):
        lock.acquire(timeout=30)
        run_cell(log, sandbox_id, log.tip(sandbox_id))
        lock.release()
    log.close()


class Machine(RuleBasedStateMachine):
    """Sandboxes are lists of steps; a step knows its parent and whether it is settled."""

    log_settings = None
    sandboxes = Bundle("sandboxes")

    def __init__(self):
        super().__init__()
        self.log = open_log(self.log_settings)
        self.steps = {}
        self.origin = {}
        self.order = {}
        self.settled = set()
        self.running = {}
        self.fork_of = {}
        self.sources = {}

    def teardown(self):
        for sandbox_id in self.order:
            assert self.log.verify(sandbox_id) == []
        self.log.close()

    # What the model says.

    def tip(self, sandbox_id):
        settled = [one for one in self.order[sandbox_id] if one in self.settled]
        return settled[-1] if settled else self.fork_of[sandbox_id]

    def chain(self, step_id):
        found = []
        while step_id is not None:
            found.append(step_id)
            step_id = self.origin[step_id]
        return found[::-1]

    def note(self, sandbox_id, step, origin):
        assert step.seq == len(self.order[sandbox_id]) + 1
        self.order[sandbox_id].append(step.id)
        self.origin[step.id] = origin
        self.steps[step.id] = step

    # What is done.

    @initialize(target=sandboxes)
    def first(self):
        return self.new(None)

    def new(self, parent):
        row = self.log.create_sandbox("ada", parent_step=parent)
        self.order[row.id], self.fork_of[row.id] = [], parent
        return row.id

    @rule(target=sandboxes, sandbox=sandboxes, data=st.data())
    def fork(self, sandbox, data):
        steps = self.order[sandbox]
        return self.new(data.draw(st.sampled_from(steps)) if steps else None)

    @rule(sandbox=sandboxes, source=TEXT, output=TEXT)
    def cell(self, sandbox, source, output):
        parent = self.tip(sandbox)
        step = self.log.append(make_step(sandbox, parent, source=source), on_tip=True)
        assert step.source == source
        self.note(sandbox, step, parent)
        outputs = [{"output_type": "stream", "name": "stdout", "text": output}]
        result = make_result(step, outputs=outputs, answers=[output])
        assert self.log.finish(result) == result
        self.settled.add(step.id)

    @rule(sandbox=sandboxes)
    def begin(self, sandbox):
        """Append a cell whose result comes later, or (a crash) never."""
        parent = self.tip(sandbox)
        step = self.log.append(make_step(sandbox, parent))
        self.note(sandbox, step, parent)
        self.running[step.id] = sandbox

    @precondition(lambda self: self.running)
    @rule(data=st.data(), content=st.binary(max_size=50))
    def finish(self, data, content):
        step_id = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[step_id]
        self.log.finish(make_result(step_id, files=[make_file(self.log, "f", content)]))
        self.settled.add(step_id)

    @rule(sandbox=sandboxes, content=st.binary(max_size=50))
    def upload(self, sandbox, content):
        parent = self.tip(sandbox)
        blob = self.log.blobs.put(content)
        files = [{"path": "u", "blob": blob, "size": len(content)}]
        step = make_step(sandbox, parent, kind=Kind.UPLOAD, payload={"files": files})
        step = self.log.append(step)
        self.note(sandbox, step, parent)
        self.log.finish(make_result(step))
        self.settled.add(step.id)

    @rule(sandbox=sandboxes, data=st.data())
    def rewind(self, sandbox, data):
        tip = self.tip(sandbox)
        targets = [*self.chain(tip), None] if tip else [None]
        to = data.draw(st.sampled_from(targets))
        step = self.log.append(make_step(sandbox, tip, kind=Kind.REWIND, payload={"to": to}))
        self.note(sandbox, step, to)
        self.settled.add(step.id)

    @rule(sandbox=sandboxes)
    def end(self, sandbox):
        self.log.end_sandbox(sandbox)

    @rule()
    def reopen(self):
        """A crash: nothing but the log is left."""
        self.log.close()
        self.log = open_log(self.log_settings)

    @rule(sandbox=sandboxes, counts=st.lists(st.integers(1, 3), min_size=2, max_size=2))
    def concurrently(self, sandbox, counts):
        """Other kernels append at the same time."""
        self.log.close()
        children = [forked(append_apart, self.log_settings, sandbox, count) for count in counts]
        for child, stream in children:
            stream.close()
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        self.log = open_log(self.log_settings)
        parent = self.tip(sandbox)
        new = self.log.steps(sandbox, after=len(self.order[sandbox]))
        assert len(new) == sum(counts)
        for step, result in new:
            assert result is not None
            assert step.parent_id == parent  # each continued the one before it
            self.note(sandbox, step, parent)
            self.settled.add(step.id)
            parent = step.id

    # What must hold.

    @invariant()
    def the_log_is_what_the_model_says(self):
        for sandbox_id, steps in self.order.items():
            rows = self.log.steps(sandbox_id, limit=10_000)
            assert [step.id for step, _ in rows] == steps
            assert [step for step, _ in rows] == [self.steps[one] for one in steps]
            for step, result in rows:
                finished = step.id in self.settled and step.kind is not Kind.REWIND
                assert (result is not None) == finished
            tip = self.log.tip(sandbox_id)
            assert (tip.id if tip else None) == self.tip(sandbox_id)
            if tip:
                chain = self.chain(tip.id)
                assert [step.id for step, _ in self.log.chain(tip.id)] == chain
                half = set(chain[: len(chain) // 2])
                since = [step.id for step, _ in self.log.chain_since(tip.id, half)]
                assert since == chain[len(chain) // 2 :]


def test_the_log_agrees_with_its_model(settings):
    Machine.log_settings = settings
    run_state_machine_as_test(
        Machine,
        settings=hypothesis_settings(
            max_examples=10,
            stateful_step_count=18,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
