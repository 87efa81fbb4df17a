"""A layer as an archive and back; an archive of a sandbox is not trusted."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from dagger_kernel.engines.local.archive import pack, put_file, unpack


def tree(root):
    found = {}
    for directory, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            kind = stat.S_IFMT(info.st_mode)
            content = Path(path).read_bytes() if stat.S_ISREG(info.st_mode) else b""
            target = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
            found[os.path.relpath(path, root)] = (kind, stat.S_IMODE(info.st_mode), content, target)
    return found


def test_everything_a_layer_holds_comes_back(tmp_path):
    layer, back = tmp_path / "layer", tmp_path / "back"
    home = layer / "home/sandbox"
    (home / "d").mkdir(parents=True)
    back.mkdir()
    (home / "script").write_bytes(b"#!/bin/sh\n")
    (home / "script").chmod(0o755)
    (home / "ü \n").write_bytes(b"\0\xff")
    os.symlink("/etc/passwd", home / "link")
    os.link(home / "script", home / "hard")
    os.mkfifo(home / "pipe")
    os.mknod(home / "gone", stat.S_IFCHR | 0o600, os.makedev(0, 0))
    os.setxattr(home / "d", "user.overlay.opaque", b"y")
    archive = pack(layer, 1 << 20)
    unpack(io.BytesIO(archive), back)
    assert tree(back) == tree(layer)
    assert os.getxattr(back / "home/sandbox/d", "user.overlay.opaque") == b"y"


def test_an_archive_over_its_limit_is_none(tmp_path):
    layer = tmp_path / "layer"
    layer.mkdir()
    (layer / "noise").write_bytes(os.urandom(100_000))
    assert pack(layer, 50_000) is None
    assert pack(layer, 200_000) is not None


def test_a_sparse_file_is_not_compressed(tmp_path):
    layer = tmp_path / "layer"
    layer.mkdir()
    with open(layer / "sparse", "wb") as file:
        file.truncate(1 << 20)
        assert pack(layer, 1 << 20) is not None
        file.truncate(1 << 43)
    assert pack(layer, 1 << 20) is None


def evil(name, kind=tarfile.REGTYPE, link=""):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, link, 4 if kind == tarfile.REGTYPE else 0
        tar.addfile(member, io.BytesIO(b"evil"))
    return io.BytesIO(buffer.getvalue())


@pytest.mark.parametrize(
    "archive",
    [
        evil("../outside"),
        evil("/absolute/outside"),
        evil("a/../../outside"),
        evil("../.wh.outside"),
        evil("outside", tarfile.LNKTYPE, "../secret"),
        evil("device", tarfile.CHRTYPE),
    ],
)
def test_archives_cannot_write_outside(tmp_path, archive):
    layer = tmp_path / "layer"
    layer.mkdir()
    (tmp_path / "secret").write_text("host")
    try:
        unpack(archive, layer)
    except (tarfile.TarError, OSError):
        pass
    assert sorted(os.listdir(tmp_path)) == ["layer", "secret"]
    assert not any(stat.S_ISCHR(value[0]) for value in tree(layer).values())


def test_writing_through_a_link_of_the_archive_is_refused(tmp_path):
    layer, outside = tmp_path / "layer", tmp_path / "outside"
    layer.mkdir()
    outside.mkdir()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        tar.addfile(link)
        member = tarfile.TarInfo("way/in")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(tarfile.TarError):
        unpack(io.BytesIO(buffer.getvalue()), layer)
    assert os.listdir(outside) == []


def test_an_uploaded_file_is_written_once(tmp_path):
    put_file(tmp_path, "attachments/a", 0o600, io.BytesIO(b"x"))
    with pytest.raises(FileExistsError):
        put_file(tmp_path, "attachments/a", 0o600, io.BytesIO(b"y"))
