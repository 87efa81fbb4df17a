"""What a sandbox may say: outputs, names, sources and files that hurt whoever shows or stores them."""

from __future__ import annotations

import io
import os
import stat
import tarfile

import pytest

from dagger_kernel.engines.local import archive
from dagger_kernel.engines.local.overlay import OPAQUE
from dagger_kernel.errors import SandboxPathError
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings

from .conftest import printed

NASTY = ["a\nb.txt", "a\x1b[31mb.txt", "a\x00b".replace("\x00", "\x07") + ".txt", "<img src=x onerror=alert(1)>.txt", "a'b\"c.txt",
         "b..txt", "-rf.txt", "\u202etxt.exe", "\udcff\udcfe.bin", " .txt", "x" * 240 + ".txt", "%2e%2e.txt", "a\\..\\b.txt", "CON.txt", "$(id).txt"]  # fmt: skip


def test_names_of_files_survive_or_are_refused_and_the_log_stays_whole(sandboxes):
    sandbox = sandboxes()
    done = sandbox.run(f"for n in {NASTY!r}: open(n, 'w').write('data')")
    assert done.error is None
    exported = {file.path: file.data for file in done.files}
    assert set(exported) == set(NASTY)
    assert set(exported.values()) == {b"data"}
    assert (
        printed(
            sandbox.run(
                "import os; print(len([n for n in os.listdir('.') if n.endswith(('.txt', '.bin', '.exe'))]))"
            )
        )
        == f"{len(NASTY)}\n"
    )
    sandbox.close()
    log = open_log(Settings.load(data_dir=str(sandboxes.data_dir)))
    try:
        assert log.verify() == []
        files = [f.path for _, result in log.steps(sandbox.id) if result for f in result.files]
        assert set(files) == set(NASTY)
    finally:
        log.close()


SOURCES = ["print('a\x00b')", "print('\ud800')", "print('''\x1b]0;title\x07''')", "# '; DROP TABLE step; --\nprint(1)", "print('\u202e')",
           "print('x' * 10)\r\nprint(1)", "\ufeffprint(1)", "print({!r})".format("\\N{NULL}" * 3)]  # fmt: skip


def test_sources_and_outputs_go_through_the_log_as_they_are(sandboxes):
    sandbox = sandboxes()
    statuses = [sandbox.run(source).status for source in SOURCES]
    assert set(statuses) <= {"ok", "error"}
    sandbox.close()
    log = open_log(Settings.load(data_dir=str(sandboxes.data_dir)))
    try:
        assert [step.source for step, _ in log.steps(sandbox.id)] == SOURCES
        assert log.verify() == []
    finally:
        log.close()
    again = sandboxes(sandbox.id)
    assert printed(again.run("print('goes on')")) == "goes on\n"


def test_markup_is_data_of_its_own_kind_and_never_text(sandboxes):
    """HTML and SVG travel as the MIME types that a client sanitises; nothing is turned into them on the way."""
    done = sandboxes().run(
        "from IPython.display import HTML, SVG, display\ndisplay(HTML('<script>alert(1)</script>'))\n"
        "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>'))\nprint('<script>alert(2)</script>')\n"
        "open('page.html', 'w').write('<script>alert(3)</script>'); open('pic.svg', 'w').write('<svg onload=\"alert(4)\"/>')"
    )
    kinds = [set(result.data) for result in done.results]
    assert kinds[0] == {"text/html", "text/plain"}
    assert "image/svg+xml" in kinds[1]
    assert printed(done) == "<script>alert(2)</script>\n"
    assert {f.path for f in done.files} == {"page.html", "pic.svg"}


def test_the_type_is_the_contents_and_not_the_names(sandboxes):
    """Whoever shows a file must know what it is; the server sends such types as attachments, see tests/server."""
    done = sandboxes().run(
        "open('innocent.png', 'w').write('<html><script>alert(1)</script></html>')"
    )
    (file,) = done.files
    assert file.mime == "text/html"


def test_what_is_not_said_in_json_ends_its_own_step_at_most(sandboxes):
    sandbox = sandboxes()
    code = "from IPython.display import display\ndisplay({'text/plain': 'x', 'application/json': float('nan')}, raw=True)\ndisplay({'application/json': {1: {2: {3: object()}}}}, raw=True)\nd = {}; d['d'] = d\ntry:\n    display({'application/json': d}, raw=True)\nexcept Exception: pass\ndel d"
    assert sandbox.run(code).status in ("ok", "error")
    assert printed(sandbox.run("print(1)")) == "1\n"


# -- uploads


@pytest.mark.parametrize(
    ("name", "path"),
    [("../../etc/passwd", "attachments/passwd"), ("/etc/shadow", "attachments/shadow"), ("..\\..\\boot.ini", "attachments/boot.ini"),
     ("a\nb", "attachments/a b"), ("\x1b[31mred", "attachments/[31mred"), (".bashrc", "attachments/.bashrc"), ("a/../b", "attachments/b")],
)  # fmt: skip
def test_names_of_uploads_become_names(attacker, name, path):
    assert attacker.sandbox.upload(name, b"x" + name.encode()) == path
    assert printed(attacker.run(f"print(open({path!r}, 'rb').read())")).strip() == repr(
        b"x" + name.encode()
    )


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/..", "\0", "\n"])
def test_names_that_are_none_are_refused(attacker, name):
    with pytest.raises(ValueError):
        attacker.sandbox.upload(name, b"x")


def test_an_upload_lands_where_it_says_whatever_the_sandbox_put_there(sandboxes, tmp_path):
    """attachments/ as a link out of the sandbox: the upload makes a directory, and writes through nothing."""
    sandbox = sandboxes()
    sandbox.run("import os\nos.symlink('/etc', 'attachments')")
    sandbox.upload("planted.txt", b"x")
    assert (
        printed(
            sandbox.run(
                "print(os.path.islink('attachments'), open('attachments/planted.txt').read())"
            )
        ).strip()
        == "False x"
    )
    assert not os.path.exists("/etc/planted.txt")


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a\0", ".."])
def test_paths_of_logged_uploads_are_checked_again(tmp_path, path):
    """The log is data too: a path in it does not leave the layer."""
    with pytest.raises(SandboxPathError):
        archive.put_file(tmp_path, path, 0o644, io.BytesIO(b"x"))


# -- stored layers


def tar_of(*members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, target, 0o6777
            tar.addfile(info)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize(
    "members",
    [
        [("../out", tarfile.REGTYPE, "")],
        [("/out", tarfile.REGTYPE, "")],
        [("link", tarfile.SYMTYPE, "/tmp"), ("link/out", tarfile.REGTYPE, "")],
        [("link", tarfile.SYMTYPE, ".."), ("link/out", tarfile.REGTYPE, "")],
        [("link", tarfile.SYMTYPE, ".."), ("link/.wh.out", tarfile.REGTYPE, "")],
        [("hard", tarfile.LNKTYPE, "../../etc/passwd")],
        [("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [("device", tarfile.CHRTYPE, "")],
        [("../.wh..wh..opq", tarfile.REGTYPE, "")],
    ],
)
def test_archives_do_not_leave_the_layer(tmp_path, members):
    layer = tmp_path / "layer"
    layer.mkdir()
    before = sorted(os.listdir(tmp_path))
    try:
        archive.unpack(tar_of(*members), layer)
    except (tarfile.TarError, OSError):
        pass
    assert sorted(os.listdir(tmp_path)) == before
    assert not any(
        (layer / name).exists() and os.stat(layer / name).st_ino == os.stat("/etc/passwd").st_ino
        for name in ("hard",)
    )
    assert not any(
        stat.S_ISCHR(os.lstat(p).st_mode) and os.lstat(p).st_rdev for p in layer.rglob("*")
    )


def test_set_id_bits_do_not_come_back(tmp_path):
    archive.unpack(tar_of(("f", tarfile.REGTYPE, "")), tmp_path)
    assert (tmp_path / "f").stat().st_mode & 0o6000 == 0


def test_files_that_look_like_deletions_come_back_as_files(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old / "d", new):
        folder.mkdir(parents=True)
    for name in (".wh.kept", ".wh..wh..opq", ".wh.", ".wh..", "plain"):
        (old / "d" / name).write_text(name)
    packed = archive.pack(old, 1 << 20)
    archive.unpack(io.BytesIO(packed), new)
    assert sorted(os.listdir(new / "d")) == sorted(os.listdir(old / "d"))
    assert (new / "d" / ".wh.kept").read_text() == ".wh.kept"
    with pytest.raises(OSError):
        os.getxattr(new / "d", OPAQUE)
