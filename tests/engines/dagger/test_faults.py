"""Every error of the SDK has its place in our tree; a failed command is not a failed engine."""

from __future__ import annotations

import errno
import inspect

import dagger
import dagger.mod._exceptions as of_modules
import pytest

from dagger_kernel import errors
from dagger_kernel.engines.dagger import faults


def subclasses(cls):
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


def all_of_dagger():
    known = {dagger.DaggerError, dagger.VersionMismatch, *subclasses(dagger.DaggerError)}
    for module in (dagger, of_modules):
        known |= {
            value
            for _, value in inspect.getmembers(module, inspect.isclass)
            if issubclass(value, dagger.DaggerError)
        }
    return known


def made(cls, text="it went wrong"):
    """Return an instance without the SDK's constructors, which want requests and documents."""
    error = cls.__new__(cls) if not issubclass(cls, dagger.QueryError) else Exception.__new__(cls)
    error.args = (text,)
    cls_text = type("Told", (cls,), {"__str__": lambda self: text})
    error.__class__ = cls_text
    return error


def test_the_table_lists_every_error_of_the_sdk():
    names = {cls.__name__ for cls in all_of_dagger() if cls.__name__ != "Told"}
    assert names == set(faults.CLASSES)


@pytest.mark.parametrize("cls", sorted(all_of_dagger(), key=lambda cls: cls.__name__))
def test_every_error_is_translated(cls):
    translated = faults.translate(made(cls), "testing")
    assert type(translated) is faults.CLASSES[cls.__name__]
    assert translated.engine == "dagger"
    assert "it went wrong" in translated.what
    assert translated.remedy


@pytest.mark.parametrize(
    ("cls", "text", "kind"),
    [
        (dagger.QueryError, "write /x: no space left on device", errors.StorageFullError),
        (dagger.QueryError, "waiting for client session attachables: context deadline exceeded", errors.EngineConnectionError),
        (dagger.QueryError, 'Cannot query field "mirror" on type "Container".', errors.EngineVersionError),
        (dagger.SessionError, "exit status 1 Error: incompatible engine version v0.9.0", errors.EngineVersionError),
        (dagger.SessionError, "Error: start engine: failed to run command [docker version]", errors.EngineUnavailableError),
        (dagger.ExecError, "no space left on device", errors.EngineError),
    ],
)  # fmt: skip
def test_the_message_tells_more_than_the_class(cls, text, kind):
    assert type(faults.translate(made(cls, text), "testing")) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionRefusedError(), errors.EngineConnectionError),
        (TimeoutError(), errors.EngineConnectionError),
        (OSError(errno.ENOSPC, "full"), errors.StorageFullError),
        (ValueError("odd"), errors.EngineError),
        (errors.BlobError("gone", "0"), errors.BlobError),
    ],
)
def test_errors_of_others(error, kind):
    assert type(faults.translate(error, "testing")) is kind


def test_a_message_is_short_and_plain():
    text = "Error: \x1b[31mbad\x1b[0m thing [traceparent:0-1-2]\n" + "more\n" * 50
    assert faults.brief(text) == "bad thing more more"
    assert len(faults.brief("x" * 5000)) < 700


def test_a_broken_session_is_told_from_a_failed_command():
    assert faults.broke(made(dagger.TransportError, "502 Bad Gateway"))
    assert not faults.broke(made(dagger.ExecError, "exit code: 75"))
    assert not faults.broke(made(dagger.QueryError, "stat x: no such file or directory"))
