"""What a notebook may take from this machine, and what it may not."""

import os
import socket

import pytest

from dagger_kernel.errors import SandboxPathError
from dagger_kernel.sandbox import HostFolders
from dagger_kernel.sandbox.hostfiles import MOST


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "notebooks"
    (home / "data" / "deep").mkdir(parents=True)
    (home / ".ssh").mkdir()
    for name in ("a.csv", "b.csv", "data/c.csv", "data/deep/d.csv", "data/.hidden", ".ssh/id"):
        (home / name).write_text(name)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return home


def names(files):
    return [file.name for file in files]


def read(file):
    with file.open() as stream:
        return stream.read().decode()


def test_a_file_a_folder_a_pattern(home):
    folders = HostFolders(home)
    assert names(folders.find("a.csv")) == ["a.csv"]
    assert names(folders.find(str(home / "a.csv"))) == ["a.csv"]
    assert names(folders.find("data/../b.csv")) == ["b.csv"]
    assert names(folders.find("data")) == ["data/c.csv", "data/deep/d.csv"]
    assert names(folders.find("*.csv")) == ["a.csv", "b.csv"]
    assert names(folders.find("**/*.csv")) == ["a.csv", "b.csv", "c.csv", "d.csv"]
    assert [read(file) for file in folders.find("data")] == ["data/c.csv", "data/deep/d.csv"]


@pytest.mark.parametrize(
    "path",
    ["../outside/secret.txt", "/etc/passwd", "~/x", "..", "/", "data/../../outside", "/proc/self/environ",
     "\0", "a\0b"],
)  # fmt: skip
def test_nothing_outside_of_the_folder(home, path):
    with pytest.raises(SandboxPathError):
        HostFolders(home).find(path)


@pytest.mark.parametrize("path", ["../outside/*", "/etc/p*", "~/*", "data/../../outside/*.txt"])
def test_patterns_do_not_tell_names_outside(home, path):
    with pytest.raises(SandboxPathError, match="patterns are for"):
        HostFolders(home).find(path)


@pytest.mark.parametrize("path", [".ssh/id", ".ssh", "data/.hidden"])
def test_hidden_files_stay(home, path):
    with pytest.raises(SandboxPathError, match="hidden"):
        HostFolders(home).find(path)


def test_links_lead_nowhere_outside(home):
    (home / "inside").symlink_to("a.csv")
    (home / "file").symlink_to(home.parent / "outside" / "secret.txt")
    (home / "folder").symlink_to(home.parent / "outside")
    (home / "up").symlink_to("..")
    (home / "key").symlink_to(".ssh/id")
    folders = HostFolders(home)
    assert [read(file) for file in folders.find("inside")] == ["a.csv"]
    for path in ("file", "folder", "folder/secret.txt", "up/outside/secret.txt", "key"):
        with pytest.raises(SandboxPathError):
            folders.find(path)
    # Below a named folder links are passed over.
    (home / "data" / "link.csv").symlink_to(home.parent / "outside" / "secret.txt")
    (home / "data" / "linked").symlink_to(home.parent / "outside")
    assert names(folders.find("data")) == ["data/c.csv", "data/deep/d.csv"]


def test_what_was_checked_is_what_is_opened(home):
    file, folder = HostFolders(home).find("a.csv") + HostFolders(home).find("data/c.csv")
    (home / "a.csv").unlink()
    (home / "a.csv").symlink_to(home.parent / "outside" / "secret.txt")
    (home / "data").rename(home / "moved")
    (home / "data").symlink_to(home.parent / "outside")
    for one in (file, folder):
        with pytest.raises(OSError):
            one.open()


def test_special_files_are_no_files(home):
    os.mkfifo(home / "data" / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "data" / "s"))
        for name in ("data/fifo", "data/s"):
            with pytest.raises(SandboxPathError, match="no regular file"):
                HostFolders(home).find(name)
        assert names(HostFolders(home).find("data")) == ["data/c.csv", "data/deep/d.csv"]


def test_missing_files_and_whole_folders(home):
    with pytest.raises(FileNotFoundError):
        HostFolders(home).find("nothing.csv")
    with pytest.raises(FileNotFoundError):
        HostFolders(home).find("*.parquet")
    with pytest.raises(SandboxPathError, match="whole folder"):
        HostFolders(home).find(".")


def test_other_folders_by_setting_but_never_the_log(home):
    outside = home.parent / "outside"
    folders = HostFolders(home, [home.parent], closed=outside)
    assert names(folders.find(str(home / "a.csv"))) == ["a.csv"]
    with pytest.raises(SandboxPathError, match="belongs to dagger_kernel"):
        folders.find("../outside/secret.txt")
    assert names(HostFolders(home, [outside]).find("../outside/secret.txt")) == ["secret.txt"]


def test_a_kernel_at_the_top_has_no_folder():
    with pytest.raises(SandboxPathError):
        HostFolders("/").find("etc/passwd")


def test_too_many_files(home):
    for number in range(MOST + 1):
        (home / "data" / f"{number}").touch()
    with pytest.raises(SandboxPathError, match="more than"):
        HostFolders(home).find("data")


def test_a_name_that_holds_a_pattern_is_a_name(home):
    (home / "q[1].csv").write_text("x")
    assert names(HostFolders(home).find("q[1].csv")) == ["q[1].csv"]
