"""Files a step made, changed or deleted."""

from __future__ import annotations

import os


def test_new_changed_and_deleted(room):
    result = room.run(
        "open('a.txt', 'w').write('one')\nopen('b.bin', 'wb').write(bytes(range(256)))"
    )
    assert {path: file["kind"] for path, file in result.files.items()} == {
        "a.txt": "new",
        "b.bin": "new",
    }
    assert result.files["b.bin"]["body"] == bytes(range(256))
    assert room.run("1").files == {}
    result = room.run("import os\nopen('a.txt', 'a').write('two')\nos.remove('b.bin')")
    assert result.files["a.txt"]["kind"] == "changed"
    assert result.files["a.txt"]["body"] == b"onetwo"
    assert result.files["b.bin"]["kind"] == "deleted"
    assert room.run("1").files == {}


def test_what_was_there_before_is_not_reported(room):
    room.home.mkdir(parents=True)
    (room.home / "base.toml").write_text("x")
    assert room.run("1").files == {}
    (room.home / "uploaded.csv").write_text("a,b")
    assert room.run("1").files == {}
    assert (
        room.run("import os; os.remove('uploaded.csv')").files["uploaded.csv"]["kind"] == "deleted"
    )


def test_files_of_failing_and_killed_cells(room):
    assert "x.txt" in room.run("open('x.txt', 'w').write('x')\n1 / 0").files
    assert (
        "y.txt"
        in room.run("f = open('y.txt', 'w'); f.write('y'); f.close()\nimport os; os._exit(3)").files
    )


def test_hidden_and_generated_things_are_left_out(room):
    result = room.run(
        "import os\nfor d in ('.cache', '__pycache__', '.venv', 'attachments', 'sub'):\n"
        "    os.makedirs(d, exist_ok=True); open(d + '/f.txt', 'w').close()\n"
        "open('.hidden', 'w').close(); os.makedirs('sub/attachments'); open('sub/attachments/g', 'w').close()"
    )
    assert sorted(result.files) == ["sub/attachments/g", "sub/f.txt"]


def test_exclude_patterns(room):
    result = room.run(
        "import os\nos.makedirs('data/deep')\nfor p in ('data/deep/x', 'keep.log', 'a.tmp', 'b.csv'): open(p, 'w').close()",
        exports={"exclude": ["data", "*.tmp", "keep.*"]},
    )
    assert sorted(result.files) == ["b.csv"]


def test_odd_names_and_modes(room):
    names = [
        "two words.txt",
        "café 🎉.txt",
        'it\'s "quoted".txt',
        "line\nbreak.txt",
        "-rf.txt",
        "%41.txt",
    ]
    result = room.run(
        f"import os\nfor n in {names!r}: open(n, 'w').write(n)\nos.chmod('-rf.txt', 0o750)\n"
        "open(b'bad\\xff', 'w').close()"
    )
    assert set(names) <= set(result.files)
    assert result.files["-rf.txt"]["mode"] == 0o750
    assert "bad\udcff" in result.files


def test_special_nodes_never_block(room):
    result = room.run(
        "import os, socket\nos.mkfifo('stream.fifo')\ns = socket.socket(socket.AF_UNIX); s.bind('ctl.sock')\n"
        "os.symlink('/dev/zero', 'endless.bin'); os.symlink('real.txt', 'inside'); open('real.txt', 'w').close()\n"
        "os.symlink('/etc/passwd', 'outside')"
    )
    reasons = {path: file["skipped"] for path, file in result.files.items()}
    assert reasons["stream.fifo"] == "a FIFO"
    assert reasons["ctl.sock"] == "a socket"
    assert "link out of" in reasons["endless.bin"]
    assert "link out of" in reasons["outside"]
    assert reasons["real.txt"] == ""
    assert "inside" not in reasons
    assert all(file["body"] == b"" for path, file in result.files.items() if file["skipped"])


def test_large_many_and_unreadable(room):
    result = room.run(
        "open('big', 'wb').write(bytes(3000))\nfor i in range(130): open(f'{i:03}.txt', 'w').close()",
        limits={"file_bytes": 2000, "export_files": 10},
    )
    assert "larger than" in result.files["big"]["skipped"]
    sent = [path for path, file in result.files.items() if not file["skipped"]]
    assert len(sent) == 10
    assert "71 more files" in result.stderr
    assert len(result.files) < 70


def test_moving_a_directory(room):
    room.run("import os\nos.makedirs('d/e'); open('d/e/x', 'w').write('x')")
    result = room.run("os.rename('d', 'moved')")
    assert result.files["d/e/x"]["kind"] == "deleted"
    assert (
        result.files["moved/e/x"]["kind"] in ("new", "changed") or "moved/e/x" not in result.files
    )


def test_rename_falls_back_to_copying(tmp_path, monkeypatch):
    import errno

    from dagger_kernel.runner.quirks import _with_copying

    real = os.rename

    def lower_layer(src, dst, **more):
        if os.path.basename(src) == "lower":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        real(src, dst, **more)

    rename = _with_copying(lower_layer)
    source = tmp_path / "lower"
    source.mkdir()
    (source / "f").write_text("f")
    (source / "link").symlink_to("f")
    target = tmp_path / "target"
    target.mkdir()
    rename(source, target)
    assert (target / "f").read_text() == "f"
    assert (target / "link").is_symlink()
    assert not source.exists()
    assert os.listdir(tmp_path) == ["target"]
