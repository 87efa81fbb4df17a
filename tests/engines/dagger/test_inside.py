"""The trusted helper: what it lists, writes, packs and mirrors, and that links lead it nowhere."""

from __future__ import annotations

import io
import os
import socket
import stat
import tarfile
from pathlib import Path

import pytest

from dagger_kernel.engines.dagger.inside import (
    arrivals,
    bytecode,
    difference,
    listing,
    mirroring,
    places,
)


@pytest.fixture(autouse=True)
def as_ourselves(monkeypatch):
    monkeypatch.setattr(places, "OWNER", os.getuid())
    monkeypatch.setattr(os, "chown", lambda *args, **kwargs: None)
    monkeypatch.setattr(os, "lchown", lambda *args, **kwargs: None)
    monkeypatch.setattr(os, "fchown", lambda *args, **kwargs: None)


@pytest.fixture
def roots(tmp_path):
    found = []
    for name in ("old", "new"):
        for part in places.PARTS:
            (tmp_path / name / part).mkdir(parents=True)
        found.append(tmp_path / name)
    return found


def tree(root):
    """Return everything below the user's parts: path -> kind and content."""
    found = {}
    for part in places.PARTS:
        for folder, folders, files in os.walk(root / part):
            for name in [*folders, *files]:
                place = os.path.join(folder, name)
                mode = os.lstat(place).st_mode
                if stat.S_ISLNK(mode):
                    what = ("link", os.readlink(place))
                elif stat.S_ISDIR(mode):
                    what = ("directory", stat.S_IMODE(mode))
                elif stat.S_ISREG(mode):
                    what = ("file", Path(place).read_bytes(), stat.S_IMODE(mode))
                else:
                    what = ("other", stat.S_IFMT(mode))
                found[os.path.relpath(place, root)] = what
    return found


def change(old, new):
    """Make two states that differ in every way we know of."""
    import shutil

    home = old / "home/sandbox"
    (home / "kept").write_text("same")
    (home / "edited").write_text("before")
    (home / "gone").write_text("x")
    (home / "d/e").mkdir(parents=True)
    (home / "d/e/f").write_text("deep")
    (home / "d/g").write_text("gone too")
    (home / "to_file").mkdir()
    (home / "to_file/x").write_text("x")
    (home / "to_directory").write_text("x")
    (home / "link").symlink_to("kept")
    shutil.rmtree(new)
    shutil.copytree(old, new, symlinks=True)
    home = new / "home/sandbox"
    (home / "edited").write_text("after!")
    (home / "gone").unlink()
    (home / "d/g").unlink()
    (home / "d/e/h").write_text("new")
    shutil.rmtree(home / "to_file")
    (home / "to_file").write_text("a file now")
    (home / "to_directory").unlink()
    (home / "to_directory").mkdir(mode=0o700)
    (home / "to_directory/y").write_text("y")
    (home / "link").unlink()
    (home / "link").symlink_to("/etc/passwd")
    (home / "naïve\nname").write_text("n")
    (new / "tmp/t").write_text("t")
    (new / ".dk/state").write_bytes(b"\0" * 10)
    os.mkfifo(home / "pipe")
    (home / "script").write_text("#!")
    (home / "script").chmod(0o755)
    os.link(home / "script", home / "script2")


def packed(root, old, limit=1 << 20):
    out = io.BytesIO()
    difference.pack(str(root), str(old), out, limit)
    out.seek(0)
    return out


def test_a_packed_difference_applied_gives_the_new_state(roots):
    old, new = roots
    change(old, new)
    archive = packed(new, old)
    arrivals.unpack(str(old), archive)
    assert tree(old) == tree(new)


def test_a_mirrored_state_is_equal(roots):
    old, new = roots
    change(old, new)
    mirroring.mirror(str(old), str(new))
    assert tree(old) == tree(new)
    home = old / "home/sandbox"
    assert (home / "script").stat().st_ino == (home / "script2").stat().st_ino
    assert (home / "edited").stat().st_mtime_ns == (new / "home/sandbox/edited").stat().st_mtime_ns


def test_only_differences_are_packed(roots):
    old, new = roots
    change(old, new)
    with tarfile.open(fileobj=packed(new, old)) as tar:
        names = tar.getnames()
    assert "home/sandbox/kept" not in names
    assert "home/sandbox/.wh.gone" in names
    assert "home/sandbox/d/.wh.g" in names
    assert names.index("home/sandbox/d") < names.index("home/sandbox/d/e/h")
    assert packed(old, old).getbuffer().nbytes < 500


def test_a_file_with_its_old_size_and_time_is_seen_to_have_changed(roots):
    old, new = roots
    for root, text in zip(roots, ("aaaa", "bbbb"), strict=True):
        (root / "tmp/f").write_text(text)
        os.utime(root / "tmp/f", (1, 1))
    arrivals.unpack(str(old), packed(new, old))
    assert (old / "tmp/f").read_text() == "bbbb"


def test_a_difference_over_its_limit_is_refused(roots):
    old, new = roots
    (new / "tmp/big").write_bytes(os.urandom(100_000))
    with pytest.raises(difference.TooLargeError):
        packed(new, old, 10_000)


def test_a_sparse_file_is_refused_before_it_is_compressed(roots):
    old, new = roots
    with (new / "home/sandbox/hole").open("wb") as file:
        file.truncate(8 << 40)
    with pytest.raises(difference.TooLargeError):
        packed(new, old, 1 << 20)


def test_an_archive_of_the_local_engine_applies(roots):
    from dagger_kernel.engines.local import archive

    old, new = roots
    layer = new.parent / "layer"
    (layer / "home/sandbox/d").mkdir(parents=True)
    (layer / "home/sandbox/d/f").write_text("1")
    os.mknod(layer / "home/sandbox/gone", stat.S_IFCHR | 0o600, os.makedev(0, 0))
    os.setxattr(layer / "home/sandbox/d", "user.overlay.opaque", b"y")
    (old / "home/sandbox/gone").write_text("x")
    (old / "home/sandbox/d").mkdir()
    (old / "home/sandbox/d/hidden").write_text("x")
    data = archive.pack(layer, 1 << 20)
    assert data is not None
    arrivals.unpack(str(old), io.BytesIO(data))
    assert sorted(tree(old)) == ["home/sandbox/d", "home/sandbox/d/f"]


@pytest.mark.parametrize(
    "name", ["etc/evil", "../evil", "home/sandbox/../../evil", "/opt/evil", "home/evil"]
)
def test_an_archive_writes_nothing_outside_the_users_parts(roots, name):
    old, _ = roots
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    out.seek(0)
    before = sorted(path for path in old.parent.rglob("*"))
    arrivals.unpack(str(old), out)
    assert sorted(path for path in old.parent.rglob("*")) == before


def test_an_archive_does_not_write_through_a_link(roots):
    old, _ = roots
    outside = old.parent / "outside"
    outside.mkdir()
    (old / "home/sandbox/d").symlink_to(outside)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("home/sandbox/d/f")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    out.seek(0)
    arrivals.unpack(str(old), out)
    assert list(outside.iterdir()) == []
    assert (old / "home/sandbox/d/f").read_text() == "x"


def deliver(*frames):
    waiting = [*frames, ({"type": "end"}, b"")]
    return lambda: waiting.pop(0)


def test_files_are_put_in_with_their_modes(roots):
    old, _ = roots
    (old / "home/sandbox/b").symlink_to("/etc/passwd")
    arrivals.put(
        str(old),
        deliver(
            ({"type": "put", "path": "a/ü\n.csv", "mode": 0o640}, b""),
            ({"type": "data"}, b"one "),
            ({"type": "data"}, b"two"),
            ({"type": "put", "path": "b", "mode": 0o4755}, b""),
        ),
    )
    home = old / "home/sandbox"
    assert (home / "a/ü\n.csv").read_text() == "one two"
    assert stat.S_IMODE((home / "a/ü\n.csv").stat().st_mode) == 0o640
    assert (home / "b").read_bytes() == b""
    assert not (home / "b").is_symlink()
    assert stat.S_IMODE((home / "b").stat().st_mode) == 0o755


def test_a_path_that_goes_up_is_not_put(roots):
    old, _ = roots
    with pytest.raises(ValueError, match="evil"):
        arrivals.put(str(old), deliver(({"type": "put", "path": "../../evil", "mode": 0o644}, b"")))


def test_listing_reports_links_and_does_not_follow_them(roots):
    old, _ = roots
    home = old / "home/sandbox"
    (home / "d").mkdir()
    (home / "d/f").write_text("abc")
    (home / "l").symlink_to("/etc")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.fspath(home / "s"))
    found = listing.list_directory(str(old), "", recursive=True)["entries"]
    assert {(path, kind, size) for path, kind, size, _, _ in found} == {
        ("d", "directory", 0),
        ("d/f", "file", 3),
        ("l", "link", 0),
        ("s", "other", 0),
    }
    assert listing.list_directory(str(old), "l", recursive=False) == {"error": "link"}
    assert listing.list_directory(str(old), "l/ssl", recursive=False) == {"error": "link"}
    assert listing.list_directory(str(old), "d/f", recursive=False) == {"error": "missing"}
    assert listing.list_directory(str(old), "nothing", recursive=False) == {"error": "missing"}


def test_the_runner_and_the_library_are_compiled_whatever_else_lies_there(tmp_path):
    runner, library = tmp_path / "runner", tmp_path / "python3"
    for place in ("runner/main.py", "python3/json/decoder.py", "python3/test/case.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("x = 1")
    (library / "other.py").write_text("print 'for another Python'")
    assert bytecode.compile_bytecode(str(runner), str(library))
    compiled = {path.name.split(".")[0] for path in tmp_path.rglob("*.pyc")}
    assert compiled == {"main", "decoder"}


def test_a_runner_that_cannot_be_compiled_is_told(tmp_path):
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "main.py").write_text("print 'for another Python'")
    assert not bytecode.compile_bytecode(str(tmp_path / "runner"), str(tmp_path / "missing"))
