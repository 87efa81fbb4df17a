"""Files beside the notebook, through a real kernel: %sandbox upload, the attachments folder, cell attachments."""

import base64
import json
import os

import pytest

pytestmark = pytest.mark.usefixtures("data_dir")

LIST = "import os; print(sorted(os.listdir('attachments')) if os.path.isdir('attachments') else [])"


@pytest.fixture(scope="module")
def desk(data_dir, jupyter_environment, tmp_path_factory):
    """One kernel and the folder it works in."""
    from kernel_client import Kernels

    folder = tmp_path_factory.mktemp("desk")
    kernels = Kernels(folder)
    client = kernels.start(
        "dagger",
        JPY_SESSION_NAME=str(folder / "work.ipynb"),
        DAGGER_KERNEL_FILE_BYTES="100000",
    )
    client.folder = folder
    yield client
    kernels.end()


@pytest.fixture
def kernel(desk):
    """The kernel on a new sandbox, its folder empty."""
    for name in os.listdir(desk.folder):
        os.system(f"rm -rf '{desk.folder / name}'")  # noqa: S605
    assert desk.execute("%sandbox reset").content["status"] == "ok"
    return desk


def seq(answered):
    return answered.reply["metadata"]["dagger_kernel"]["seq"]


def test_the_magic_uploads_as_one_step(kernel):
    (kernel.folder / "q3 sign-ups.csv").write_text("a\n1\n")
    (kernel.folder / "data").mkdir()
    for name in ("x.txt", "y.txt"):
        (kernel.folder / "data" / name).write_text(name)
    got = kernel.execute('%sandbox upload "q3 sign-ups.csv" data')
    assert got.content["status"] == "ok"
    assert (
        got.stdout
        == "attachments/q3 sign-ups.csv\nattachments/data/x.txt\nattachments/data/y.txt\n"
    )
    got = kernel.execute(
        "import pathlib; print(pathlib.Path('attachments/data/y.txt').read_text())"
    )
    assert got.stdout == "y.txt\n"
    assert seq(got) == 2
    assert kernel.execute("%sandbox upload *.csv").stdout == "attachments/q3 sign-ups.csv\n"
    assert seq(kernel.execute("pass")) == 3


def test_what_the_magic_leaves_out_is_told(kernel):
    (kernel.folder / "good.csv").write_text("1")
    (kernel.folder / "big.csv").write_bytes(b"x" * 100_001)
    (kernel.folder / "link.csv").symlink_to("/etc/hostname")
    (kernel.folder / ".env").write_text("KEY=1")
    (kernel.folder / "empty").mkdir()
    os.mkfifo(kernel.folder / "fifo")
    got = kernel.execute(
        "%sandbox upload good.csv big.csv link.csv .env empty fifo missing.csv ../up.csv no*.csv"
    )
    assert got.content["status"] == "ok"
    assert got.stdout == "attachments/good.csv\n"
    told = got.stderr.splitlines()
    assert len(told) == 8
    for name, why in {
        "big.csv": "DAGGER_KERNEL_FILE_BYTES", "link.csv": "not below the notebook's folder",
        ".env": "hidden", "empty": "no file", "fifo": "no regular file", "missing.csv": "no such file",
        "../up.csv": "not below", "no*.csv": "no file matches",
    }.items():  # fmt: skip
        assert any(name in line and why in line for line in told), (name, told)
    got = kernel.execute("%sandbox upload missing.csv")
    assert got.enames == ["UsageError"]
    assert kernel.execute("%sandbox upload").enames == ["UsageError"]


def test_the_attachments_folder_comes_by_itself(kernel):
    assert kernel.execute(LIST).stdout == "[]\n"
    (kernel.folder / "attachments").mkdir()
    (kernel.folder / "attachments" / "a.csv").write_text("1")
    (kernel.folder / "attachments" / "big.csv").write_bytes(b"x" * 100_001)
    got = kernel.execute(LIST)
    assert got.stdout == "['a.csv']\n"
    assert "'big.csv' was not put into the sandbox" in got.stderr
    got = kernel.execute(LIST)
    assert (got.stdout, got.stderr) == ("['a.csv']\n", "")
    (kernel.folder / "attachments" / "a.csv").write_text("22")
    assert kernel.execute("print(open('attachments/a.csv').read())").stdout == "22\n"
    assert seq(kernel.execute("pass")) == 7
    assert "put into" not in kernel.execute("%sandbox rewind 1").stderr
    assert kernel.execute(LIST).stdout == "['a.csv']\n"


def test_attachments_of_cells_come_by_themselves(kernel):
    picture = base64.b64encode(b"\x89PNG fake").decode()
    cell = {
        "cell_type": "markdown", "id": "m1", "metadata": {}, "source": "![](attachment:plan.png)",
        "attachments": {"plan.png": {"image/png": picture}},
    }  # fmt: skip
    (kernel.folder / "work.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    assert kernel.execute("print(open('attachments/plan.png','rb').read())").stdout == (
        "b'\\x89PNG fake'\n"
    )
    assert seq(kernel.execute("pass")) == 3
