"""Reading a state from outside never leaves it, whatever the sandbox made."""

from __future__ import annotations

import os
import stat

import pytest

from dagger_kernel.engines.files import split
from dagger_kernel.engines.local.view import View
from dagger_kernel.errors import SandboxPathError


@pytest.fixture
def stack(tmp_path):
    top, base = tmp_path / "top", tmp_path / "base"
    for root in (top, base):
        (root / "home/sandbox").mkdir(parents=True)
    return top / "home/sandbox", base / "home/sandbox", View([top, base])


def read(view, path):
    handle = view.open(path)
    with os.fdopen(handle, "rb") as file:
        return file.read()


def test_the_top_layer_wins(stack):
    top, base, view = stack
    (base / "f").write_text("old")
    (top / "f").write_text("new")
    (base / "g").write_text("below")
    assert read(view, "f") == b"new"
    assert read(view, "g") == b"below"
    assert [info.path for info in view.list("")] == ["f", "g"]


def test_deleted_and_replaced_things_are_gone(stack):
    top, base, view = stack
    (base / "f").write_text("old")
    (base / "d").mkdir()
    (base / "d" / "x").write_text("old")
    os.mknod(top / "f", stat.S_IFCHR, os.makedev(0, 0))
    (top / "d").mkdir()
    os.setxattr(top / "d", "user.overlay.opaque", b"y")
    assert [info.path for info in view.list("", recursive=True)] == ["d"]
    for path in ("f", "d/x"):
        with pytest.raises(FileNotFoundError):
            view.open(path)


def test_a_file_over_a_directory_hides_it(stack):
    top, base, view = stack
    (base / "d").mkdir()
    (base / "d" / "x").write_text("old")
    (top / "d").write_text("a file now")
    with pytest.raises(FileNotFoundError):
        view.open("d/x")
    assert read(view, "d") == b"a file now"


@pytest.mark.parametrize("layer", [0, 1])
def test_links_are_reported_and_never_followed(stack, layer, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("host")
    home, view = stack[layer], stack[2]
    os.symlink(secret / "key", home / "file")
    os.symlink(secret, home / "directory")
    os.symlink("../../../secret", home / "relative")
    assert {info.kind for info in view.list("", recursive=True)} == {"link"}
    for path in ("file", "directory/key", "relative/key", "directory"):
        with pytest.raises((SandboxPathError, FileNotFoundError)):
            view.open(path)
    with pytest.raises(FileNotFoundError):
        view.list("directory")


def test_special_files_never_block(stack):
    top, _, view = stack
    os.mkfifo(top / "pipe")
    with pytest.raises(SandboxPathError, match="named pipe"):
        view.open("pipe")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a/b", ("a", "b")),
        ("./a//b/", ("a", "b")),
        ("/home/sandbox/a", ("a",)),
        ("", ()),
        ("…/ü", ("…", "ü")),
    ],
)
def test_paths_are_relative_to_the_home_directory(path, parts):
    assert split(path) == parts


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "..", "a/../..", "a\0b", "x" * 256, "/home/sandboxes"]
)
def test_other_paths_are_refused(path):
    with pytest.raises(SandboxPathError):
        split(path)
