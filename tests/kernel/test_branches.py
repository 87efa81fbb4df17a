"""%sandbox rewind and %sandbox fork in a real kernel."""

import os

import pytest

pytestmark = pytest.mark.usefixtures("data_dir")


@pytest.fixture
def kernel(start_kernel):
    """A kernel whose sandbox has three steps: x is 1, 2, 3."""
    kernel = start_kernel("dagger")
    for number in (1, 2, 3):
        kernel.execute(f"x = {number}\nopen('x.txt', 'w').write(str(x));")
    return kernel


def test_rewind_continues_from_an_earlier_step(kernel):
    got = kernel.execute("%sandbox rewind 2")
    assert got.stdout.startswith("The next cell continues from step 2: x = 2\n")
    got = kernel.execute("print(x, open('x.txt').read())")
    assert got.stdout == "2 2\n"
    assert got.content["execution_count"] == 5  # numbers are never used twice
    log = kernel.execute("%sandbox log").stdout
    assert [line.split()[1] for line in log.splitlines()] == ["cell"] * 3 + ["rewind", "cell"]


def test_rewind_to_the_beginning_and_back(kernel):
    kernel.execute("%sandbox rewind 0")
    assert kernel.execute("x").enames == ["NameError"]
    kernel.execute("%sandbox rewind 3")
    assert kernel.execute("print(x)").stdout == "3\n"


def test_completion_follows_a_rewind(kernel):
    kernel.execute("afterwards = 1")
    kernel.execute("%sandbox rewind 1")
    question = {"code": "afterw", "cursor_pos": 6}
    assert kernel.request("complete_request", question).content["matches"] == []


def test_a_step_that_is_not_there(kernel):
    for command in ("rewind", "fork"):
        got = kernel.execute(f"%sandbox {command} 77")
        assert got.enames == ["StepNotFoundError"]
    assert kernel.execute("print(x)").stdout == "3\n"


@pytest.mark.parametrize(("step", "value"), [("", 3), ("1", 1)])
def test_fork_leaves_the_old_sandbox_alone(kernel, start_kernel, step, value):
    old = kernel.execute("%sandbox id").stdout.strip()
    assert old in kernel.execute(f"%sandbox fork {step}").stdout
    assert kernel.execute("x *= 10\nprint(x)").stdout == f"{value * 10}\n"
    assert kernel.execute("%sandbox id").stdout.strip() != old
    kernel.kc.stop_channels()
    again = start_kernel("dagger", DAGGER_KERNEL_SANDBOX=old)
    assert again.execute("print(x)").stdout == "3\n"


def test_a_notebooks_next_kernel_continues_the_fork(kernels, data_dir):
    env = {"JPY_SESSION_NAME": "/nb/forked.ipynb"}
    first = kernels.start("dagger", **env)
    first.execute("x = 1")
    first.execute("%sandbox fork")
    first.execute("x = 2")
    first.manager.shutdown_kernel()
    again = kernels.start("dagger", **env)
    assert again.execute("print(x)").stdout == "2\n"
    again.manager.restart_kernel(env={**os.environ, **env})
    again.kc.wait_for_ready(timeout=60)
    assert again.execute("x").enames == ["NameError"]
