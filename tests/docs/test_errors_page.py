"""Every error has a row in ``docs/errors.md``, and its message says what to do."""

import re
from pathlib import Path

import pytest

from dagger_kernel import errors

PAGE = Path(__file__).resolve().parents[2] / "docs/errors.md"

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.DaggerKernelError)
]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_the_page_explains_it(error):
    assert f"`{error.__name__}`" in PAGE.read_text("utf-8")


def test_the_page_invents_none():
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    assert named <= {error.__name__ for error in CLASSES}


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_the_tree_in_the_docstring_has_it(error):
    assert (
        re.search(rf"[─ ]{error.__name__}\b", errors.__doc__) or error is errors.DaggerKernelError
    )


def test_commands_that_messages_name_exist():
    import inspect

    import typer

    from dagger_kernel.cli.app import app

    commands = typer.main.get_command(app).commands
    named = set(re.findall(r"`dagger-kernel (\w+)", inspect.getsource(errors)))
    assert named
    assert named <= set(commands)
