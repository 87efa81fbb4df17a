"""Kernels for the tests: the real one, and the real process on a scripted session."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

HERE = Path(__file__).parent
REPO = HERE.parents[1]
sys.path.insert(0, str(HERE))

from client import Client  # noqa: E402


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
def start_kernel(jupyter_environment, tmp_path):
    """Return a function that starts a kernel and gives a manager, a client and its stderr file."""
    started = []

    def start(name="scripted", **env):
        log = (tmp_path / f"kernel-{len(started)}.log").open("w+b")
        manager = KernelManager(kernel_name=name)
        import os

        manager.start_kernel(cwd=str(tmp_path), env={**os.environ, **env}, stdout=log, stderr=log)
        kc = manager.client()
        kc.start_channels()
        started.append((manager, kc, log))
        kc.wait_for_ready(timeout=60)
        client = Client(kc)
        client.manager, client.log = manager, log
        return client

    yield start
    for manager, kc, log in started:
        kc.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        log.close()


@pytest.fixture
def scripted(start_kernel):
    """A kernel on a scripted session."""
    return start_kernel("scripted")
