"""Kernels for the tests: the real one, and the real process on a scripted session."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPO = HERE.parents[1]
sys.path.insert(0, str(HERE))

from kernel_client import Kernels  # noqa: E402


@pytest.fixture(scope="session")
def kernelspecs(tmp_path_factory):
    """Register the kernelspecs of the source tree, and the scripted kernels, below JUPYTER_PATH."""
    root = tmp_path_factory.mktemp("jupyter")
    for name, folder in (("dagger", "python"), ("dagger-bash", "bash")):
        (root / "kernels").mkdir(exist_ok=True)
        (root / "kernels" / name).symlink_to(REPO / "kernelspec" / folder)
    for name, extra in (("scripted", []), ("scripted-bash", ["--language=bash"])):
        folder = root / "kernels" / name
        folder.mkdir()
        spec = json.loads((REPO / "kernelspec" / "python" / "kernel.json").read_text())
        spec["argv"] = [
            "python",
            str(HERE / "scripted_kernel.py"),
            "-f",
            "{connection_file}",
            *extra,
        ]
        (folder / "kernel.json").write_text(json.dumps(spec))
    return root


@pytest.fixture(scope="session")
def jupyter_environment(kernelspecs, tmp_path_factory):
    """Return the environment of a kernel that finds this source tree."""
    patch = pytest.MonkeyPatch()
    patch.setenv("JUPYTER_PATH", str(kernelspecs))
    patch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    patch.setenv("PYTHONPATH", str(REPO))
    patch.delenv("JPY_SESSION_NAME", raising=False)
    yield
    patch.undo()


@pytest.fixture
def kernels(jupyter_environment, tmp_path):
    """Kernels that end with the test."""
    kernels = Kernels(tmp_path)
    yield kernels
    kernels.end()


@pytest.fixture
def start_kernel(kernels):
    """Return a function that starts a kernel and returns its client."""
    return kernels.start


@pytest.fixture(scope="module")
def module_kernel(jupyter_environment, tmp_path_factory):
    """One scripted kernel for the tests of a module."""
    kernels = Kernels(tmp_path_factory.mktemp("module"))
    yield kernels.start("scripted")
    kernels.end()


@pytest.fixture
def scripted(module_kernel):
    """A kernel on a new scripted session; the process is shared by the module's tests."""
    assert module_kernel.execute("%sandbox reset", linger=0).content["status"] == "ok"
    return module_kernel
