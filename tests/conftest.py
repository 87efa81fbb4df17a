"""What every test shares: an isolated environment, and one base for the whole run.

The base is built once (about 15 seconds and 100 MB from the package index) into ``.test-data/`` and kept for
the next run. Tests that want a log of their own take ``fresh_data_dir``: a new data directory whose base
is the shared one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import filelock
import pytest

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("DAGGER_KERNEL_TEST_DATA_DIR", ROOT / ".test-data"))
KEPT = {
    f"DAGGER_KERNEL_{name}"
    for name in ("RUNNER_HOST", "CLI_BIN", "BASE_PATH", "INDEX_URL", "PROXY", "CA_BUNDLE")
}


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_collection_modifyitems(config, items):
    dagger = os.environ.get("DAGGER_KERNEL_RUNNER_HOST")
    for item in items:
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; run with --slow"))
        if item.get_closest_marker("dagger") and not dagger:  # keywords hold folder names too
            item.add_marker(
                pytest.mark.skip(reason="no Dagger engine: set DAGGER_KERNEL_RUNNER_HOST")
            )


@pytest.fixture(scope="session", autouse=True)
def isolated_environment(tmp_path_factory):
    """No test reads or writes the user's own log, config or IPython files."""
    before = dict(os.environ)
    for name in list(os.environ):
        if name.startswith("DAGGER_KERNEL_") and name not in KEPT:
            del os.environ[name]
    home = tmp_path_factory.mktemp("home")
    os.environ["DAGGER_KERNEL_CONFIG"] = str(home / "dagger_kernel.toml")
    os.environ["DAGGER_KERNEL_ENGINE"] = "local"
    os.environ["IPYTHONDIR"] = str(home / "ipython")
    os.environ["JUPYTER_RUNTIME_DIR"] = str(home / "runtime")
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def shared_base(isolated_environment):
    """The directory whose bases/, recipe and recipe blob every other data directory borrows."""
    from dagger_kernel.engines.local import LocalEngine
    from dagger_kernel.engines.local.probe import probe
    from dagger_kernel.log import open_log
    from dagger_kernel.settings import Settings

    found = probe()
    if not found.available:
        pytest.skip(found.reason)
    SHARED.mkdir(parents=True, exist_ok=True)
    settings = Settings.load(data_dir=str(SHARED))

    async def build(blobs):
        engine = LocalEngine(settings, blobs)
        try:
            await engine.bases.prepare(lambda _text: None, None)
        finally:
            await engine.close()

    with filelock.FileLock(SHARED / ".building.lock"):
        log = open_log(settings)
        try:
            asyncio.run(build(log.blobs))
        finally:
            log.close()
    return SHARED


def borrow_base(shared: Path, data_dir: Path) -> Path:
    """Make a data directory that uses the shared base."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    (data_dir / "bases").symlink_to(shared / "bases")
    shutil.copy(shared / "base-recipes.json", data_dir)
    shutil.copytree(shared / "blobs", data_dir / "blobs")
    return data_dir


@pytest.fixture(scope="session")
def data_dir(shared_base, tmp_path_factory):
    """One data directory for the tests of a session that need no log of their own."""
    path = borrow_base(shared_base, tmp_path_factory.mktemp("data") / "dagger_kernel")
    os.environ["DAGGER_KERNEL_DATA_DIR"] = str(path)
    return path


@pytest.fixture
def fresh_data_dir(shared_base, tmp_path):
    """A data directory with an empty log."""
    return borrow_base(shared_base, tmp_path / "dagger_kernel")
