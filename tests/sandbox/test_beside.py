"""What lies beside a notebook comes into its sandbox by itself, once."""

import base64
import json
import os

import pytest

from dagger_kernel.log import open_log
from dagger_kernel.sandbox import Attachments, Beside, rewind, upload_files
from dagger_kernel.sandbox.beside import attachments_of
from dagger_kernel.sandbox.hostfiles import MOST
from dagger_kernel.settings import Settings


class Desk:
    """A notebook's folder, and what a session does with it before each cell."""

    def __init__(self, root, **settings):
        self.home = root / "notebooks"
        self.folder = self.home / "attachments"
        self.folder.mkdir(parents=True)
        self.settings = Settings.load(data_dir=str(root / "data"), **settings)
        self.log = open_log(self.settings)
        self.sandbox = self.log.create_sandbox("someone").id
        self.state = 0
        self.start()

    def start(self):
        """A new kernel."""
        self.beside = Beside(self.home, str(self.home / "work.ipynb"), self.settings)
        self.known = Attachments()

    def cell(self):
        """Look before a cell; return the places of what was new, and the notices."""
        found = self.beside.look(self.state)
        if not found.files:
            return [], found.notices
        done = upload_files(
            self.log, self.sandbox, found.files, self.settings, attachments=self.known,
            reuse_equal=True,
        )  # fmt: skip
        found.taken(done.skipped)
        new = [item["path"] for item in done.step.payload["files"]] if done.step else []
        return new, found.notices

    def write_notebook(self, *cells):
        self.home.joinpath("work.ipynb").write_text(json.dumps({"cells": list(cells)}))


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path, file_bytes=1000)
    yield desk
    desk.log.close()


def attached(cell_id, **files):
    bundles = {name: {"image/png": base64.b64encode(data).decode()} for name, data in files.items()}
    return {"cell_type": "markdown", "id": cell_id, "source": "", "attachments": bundles}


def test_files_come_once_and_again_when_they_change(desk):
    assert desk.cell() == ([], [])
    (desk.folder / "a.csv").write_text("1")
    (desk.folder / "deep").mkdir()
    (desk.folder / "deep" / "b.csv").write_text("1")
    assert desk.cell() == (["attachments/a.csv", "attachments/deep/b.csv"], [])
    assert desk.cell() == ([], [])
    (desk.folder / "a.csv").write_text("22")
    assert desk.cell() == (["attachments/a.csv"], [])
    (desk.folder / "a.csv").touch()  # a new time, the same bytes
    assert desk.cell() == ([], [])
    assert len(desk.log.steps(desk.sandbox)) == 2


def test_many_files_are_one_step(desk):
    for number in range(200):
        (desk.folder / f"{number}.csv").write_text(str(number))
    assert len(desk.cell()[0]) == 200
    assert len(desk.log.steps(desk.sandbox)) == 1


def test_a_new_kernel_puts_nothing_in_twice(desk):
    (desk.folder / "a.csv").write_text("1")
    desk.cell()
    desk.start()
    assert desk.cell() == ([], [])


def test_what_did_not_change_is_not_read(desk, monkeypatch):
    (desk.folder / "a.csv").write_text("1")
    desk.write_notebook(attached("c1", **{"a.png": b"1"}))
    desk.cell()
    monkeypatch.setattr("dagger_kernel.sandbox.beside.open_file", None)
    assert desk.cell() == ([], [])


def test_after_a_rewind_it_is_put_in_again(desk):
    (desk.folder / "a.csv").write_text("1")
    desk.cell()
    rewind(desk.log, desk.sandbox, 0)
    desk.state += 1
    assert desk.cell() == (["attachments/a.csv"], [])


def test_too_large_is_told_once(desk):
    (desk.folder / "big.csv").write_text("x" * 1001)
    new, notices = desk.cell()
    assert new == []
    assert len(notices) == 1
    assert "'big.csv'" in notices[0]
    assert "DAGGER_KERNEL_FILE_BYTES" in notices[0]
    assert desk.cell() == ([], [])
    desk.state += 1
    assert desk.cell() == ([], [])
    (desk.folder / "big.csv").write_text("x" * 1000)
    assert desk.cell() == (["attachments/big.csv"], [])


def test_links_and_special_files_stay_out(desk, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "secret").write_text("secret")
    (desk.folder / "link").symlink_to(tmp_path / "secret")
    (desk.folder / "linked").symlink_to(tmp_path / "others")
    os.mkfifo(desk.folder / "fifo")
    (desk.folder / ".hidden").write_text("x")
    (desk.folder / "good.csv").write_text("1")
    new, notices = desk.cell()
    assert new == ["attachments/good.csv"]
    assert len(notices) == 2
    assert all("it is a link" in notice for notice in notices)
    assert desk.cell() == ([], [])


def test_a_linked_folder_is_not_followed(desk, tmp_path):
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "secret").write_text("secret")
    desk.folder.rmdir()
    desk.folder.symlink_to(tmp_path / "others")
    new, notices = desk.cell()
    assert new == []
    assert "link" in notices[0]
    assert desk.cell() == ([], [])


def test_more_files_than_are_taken(desk):
    for number in range(MOST + 5):
        (desk.folder / f"{number}.csv").touch()
    new, notices = desk.cell()
    assert len(new) == MOST
    assert "more than 1000" in notices[0]
    assert desk.cell() == ([], [])


def test_unreadable_files_are_tried_again(desk, monkeypatch):
    (desk.folder / "a.csv").write_text("1")
    with monkeypatch.context() as patch:
        patch.setattr(
            "dagger_kernel.sandbox.beside.open_file",
            lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")),
        )
        assert desk.cell() == ([], [])
    assert desk.cell() == (["attachments/a.csv"], [])


def test_awkward_names(desk):
    (desk.folder / "two\nlines .csv").write_text("1")
    (desk.folder / "ünï côde.csv").write_text("1")
    (desk.folder / os.fsdecode(b"\xff.csv")).write_text("1")
    new, notices = desk.cell()
    assert set(new) == {
        "attachments/two lines .csv",
        "attachments/ünï côde.csv",
        "attachments/.csv",
    }
    assert notices == []
    assert desk.cell() == ([], [])


def test_attachments_of_cells(desk):
    desk.write_notebook(
        attached("c1", **{"image.png": b"one", "plan.png": b"plan"}),
        attached("c2", **{"image.png": b"two"}),
        {"cell_type": "code", "source": "1"},
    )
    assert desk.cell()[0] == [
        "attachments/image.png", "attachments/plan.png", "attachments/image (2).png",
    ]  # fmt: skip
    desk.write_notebook(
        attached("c1", **{"image.png": b"one", "plan.png": b"plan"}),
        attached("c2", **{"image.png": b"new"}),
        attached("c3", **{"image.png": b"one"}),
    )
    assert desk.cell()[0] == ["attachments/image (2).png"]
    desk.start()
    assert desk.cell() == ([], [])


def test_a_notebook_elsewhere_is_not_read(desk, tmp_path):
    (tmp_path / "other.ipynb").write_text(json.dumps({"cells": [attached("c", a=b"1")]}))
    desk.beside = Beside(desk.home, str(tmp_path / "other.ipynb"), desk.settings)
    assert desk.cell() == ([], [])
    desk.home.joinpath("work.ipynb").symlink_to(tmp_path / "other.ipynb")
    desk.start()
    assert desk.cell() == ([], [])


def test_both_can_be_switched_off(tmp_path):
    desk = Desk(tmp_path, attachments_folder="", cell_attachments=False)
    (desk.folder / "a.csv").write_text("1")
    desk.write_notebook(attached("c1", a=b"1"))
    assert desk.cell() == ([], [])
    desk.log.close()


@pytest.mark.parametrize(
    ("bundle", "data"),
    [({"image/png": "AAEC"}, b"\0\1\2"), ({"image/png": ["AA", "EC"]}, b"\0\1\2"),
     ({"image/png": "AAEC\n"}, b"\0\1\2"),
     ({"text/csv": "a,b\n1,2\n"}, b"a,b\n1,2\n"), ({"text/plain": "abcd"}, b"abcd"),
     ({"text/csv": "YSxi"}, b"a,b"), ({"application/json": {"a": 1}}, b'{\n "a": 1\n}')],
)  # fmt: skip
def test_how_attachments_are_written_down(bundle, data):
    cell = {"cell_type": "markdown", "attachments": {"a": bundle}}
    (given,) = attachments_of(json.dumps({"cells": [cell]}).encode())
    assert given.content == data


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"cells": 1}', '{"cells": [1, {"attachments": 1}, {"attachments": {"a": 1}}]}',
     '{"cells": [{"attachments": {"a": {}}}]}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_notebook_has_no_attachments(text):
    assert attachments_of(f'{text}"attachments"'.encode()) == []
    assert attachments_of(text.encode()) == []
