"""What the Python API gives back, in the shape that agents know."""

import json

import pytest

from dagger_kernel import Sandbox


@pytest.fixture(scope="module")
def sandbox(data_dir):
    with Sandbox() as sandbox:
        yield sandbox


def test_results_logs_and_error(sandbox):
    done = sandbox.run(
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
        "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\n{'a': 1}"
    )
    assert (done.text, done.error, done.status) == ("{'a': 1}", None, "ok")
    assert ("".join(done.logs.stdout), "".join(done.logs.stderr)) == ("out\n", "err\n")
    shown, value = done.results
    assert (shown.html, shown.is_main_result, shown.png) == ("<b>x</b>", False, None)
    assert (value.text, value.is_main_result, value.formats()) == ("{'a': 1}", True, ["text"])
    told = json.loads(done.to_json())
    assert told["results"][0]["html"] == "<b>x</b>"
    assert (told["logs"]["stdout"], told["error"]) == (done.logs.stdout, None)


def test_a_failing_cell(sandbox):
    done = sandbox.run("kept = 1\n1 / 0")
    assert (done.error.name, done.error.value) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in done.error.traceback or "ZeroDivisionError" in done.error.traceback
    assert json.loads(done.to_json())["error"]["name"] == "ZeroDivisionError"
    assert sandbox.run("kept").text == "1"


def test_callbacks_come_with_what_results_hold(sandbox):
    texts, results, errors = [], [], []
    sandbox.run("print('a')\ndisplay(1)\n2", on_stdout=texts.append, on_result=results.append)
    assert "".join(texts) == "a\n"
    assert [(item.text, item.is_main_result) for item in results] == [("1", False), ("2", True)]
    sandbox.run("int('x')", on_error=errors.append)
    assert [error.name for error in errors] == ["ValueError"]


def test_names_that_the_user_drops_cost_nothing(sandbox):
    sandbox.run("globals().clear()")
    assert sandbox.run("1 + 1").text == "2"
    assert sandbox.run("x = 5\nx").text == "5"
