"""What a user installs: the panel comes built, and needs no Node."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from ..conftest import ROOT

NAME = "dagger-kernel-lab"
LABEXTENSION = f"data/share/jupyter/labextensions/{NAME}"


def run(command, **options):
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=280, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def without_node(tmp_path_factory):
    """An environment whose PATH has Python and a few tools, but no Node.

    /usr/bin cannot be in it: Node may be installed there.
    """
    folder = tmp_path_factory.mktemp("bin")
    for tool in ("sh", "env", "git", "uname", "cat", "ls"):
        if found := shutil.which(tool):
            (folder / tool).symlink_to(found)
    path = f"{Path(sys.executable).parent}:{folder}"
    assert shutil.which("node", path=path) is None
    return os.environ | {"PATH": path}


@pytest.fixture(scope="module")
def sdist(tools, tmp_path_factory):
    """The source archive, with the built panel in it."""
    folder = tmp_path_factory.mktemp("sdist")
    builder = folder / "builder"
    run([sys.executable, "-m", "pip", "install", "-q", "--target", builder, "hatchling>=1.27"])
    run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(builder)},
    )
    (path,) = folder.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(sdist, without_node, tmp_path_factory):
    """A wheel from the source archive, on a machine without Node."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, sdist]
    run(command, env=without_node)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_has_the_built_panel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (package,) = (name for name in names if name.endswith(f"{LABEXTENSION}/package.json"))
        built = json.loads(archive.read(package))
        texts = [
            archive.read(name).decode("utf-8", "replace") for name in names if "static/" in name
        ]
    assert built["name"] == NAME
    entry = built["jupyterlab"]["_build"]["load"]
    assert any(name.endswith(f"{LABEXTENSION}/{entry}") for name in names)
    assert any(name.endswith(f"{LABEXTENSION}/install.json") for name in names)
    assert any(name.endswith("jupyter_server_config.d/dagger_kernel.json") for name in names)
    # A development build has the builder's paths in it.
    assert not any(str(ROOT) in text for text in texts)
    assert not any(name.endswith((".map", "build_log.json")) for name in names)


def test_jupyter_finds_both_extensions(wheel, without_node, tmp_path):
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = str(tmp_path / "env/bin/python")
    run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "-q", wheel])
    environment = without_node | {
        "JUPYTER_PATH": str(tmp_path / "env/share/jupyter"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "env/etc/jupyter"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "PYTHONPATH": str(next((tmp_path / "env/lib").glob("*/site-packages"))),
        "PYTHONWARNINGS": "",
    }
    for command, wanted in (
        (["labextension", "list"], rf"{NAME} v[\d.]+ enabled OK"),
        (["server", "extension", "list"], r"dagger_kernel\.server enabled"),
    ):
        done = run([sys.executable, "-m", "jupyter", *command], env=environment, cwd=tmp_path)
        text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        assert re.search(wanted, text), text


def test_a_checkout_without_node_installs_without_the_panel(without_node, tmp_path):
    source = tmp_path / "source"
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    files = run(["git", "ls-files", "-z"], cwd=ROOT).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, source]
    run(command, env=without_node)
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert "dagger_kernel/__init__.py" in names
    assert not any("labextensions" in name for name in names)
    failed = subprocess.run(
        command,
        env=without_node | {"DAGGER_KERNEL_PANEL": "required"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode != 0
    assert "Node 20 or newer was not found" in failed.stderr


def test_the_lock_names_no_host():
    text = (ROOT / "labextension" / "yarn.lock").read_text("utf-8")
    assert "://" not in text
    assert "resolved" not in text


def test_versions_agree():
    from dagger_kernel import __version__

    package = json.loads((ROOT / "labextension" / "package.json").read_text("utf-8"))
    assert package["version"] == __version__


def test_the_model(tools):
    """The TypeScript model's own tests."""
    jest = ROOT / "labextension" / "node_modules" / ".bin" / "jest"
    if not jest.exists() or shutil.which("node") is None:
        pytest.skip("jest is not installed (jlpm install in labextension/)")
    run([str(jest), "--ci"], cwd=ROOT / "labextension")
