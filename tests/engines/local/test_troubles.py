"""What the local engine says when it cannot work: one clear message, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from dagger_kernel.engines.local import LocalEngine
from dagger_kernel.engines.local.interpreter import find_interpreter
from dagger_kernel.engines.local.probe import probe
from dagger_kernel.engines.memory import Memory
from dagger_kernel.engines.select import select_engine
from dagger_kernel.errors import BaseBuildError, EngineUnavailableError, SettingError
from dagger_kernel.log import open_log
from dagger_kernel.settings import Settings


@pytest.fixture
def no_user_namespaces(monkeypatch):
    """A bubblewrap that fails as it does where user namespaces are off."""
    import dagger_kernel.engines.local.probe as module

    monkeypatch.setattr(
        module, "_run", lambda command: "bwrap: No permissions to create a new namespace"
    )
    probe.cache_clear()
    yield
    probe.cache_clear()


async def test_without_user_namespaces_it_says_so_and_names_ways_out(no_user_namespaces, tmp_path):
    settings = Settings.load(data_dir=str(tmp_path), engine="local")
    log = open_log(settings)
    engine = LocalEngine(settings, log.blobs)
    with pytest.raises(EngineUnavailableError) as caught:
        await engine.prepare()
    assert "user namespaces" in caught.value.what
    assert "DAGGER_KERNEL_RUNNER_HOST" in caught.value.remedy
    assert (await engine.describe())["available"] is False
    log.close()


async def test_auto_names_both_reasons_and_remedies(no_user_namespaces, tmp_path):
    settings = Settings.load(data_dir=str(tmp_path), engine="auto", runner_host="")
    log = open_log(settings)
    with pytest.raises(EngineUnavailableError) as caught:
        await select_engine(settings, log.blobs)
    assert "No Dagger engine is configured" in str(caught.value)
    assert "user namespaces" in str(caught.value)
    log.close()


async def test_a_base_that_cannot_be_built_tells_why(shared_base, tmp_path, monkeypatch):
    # Nothing listens there: the same as a machine without a network.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = Settings.load(
        data_dir=str(tmp_path / "data"), index_url="http://127.0.0.1:9/simple", proxy=""
    )
    log = open_log(settings)
    engine = LocalEngine(settings, log.blobs)
    told = []
    with pytest.raises(BaseBuildError) as caught:
        await engine.prepare(told.append)
    await engine.close()
    assert "127.0.0.1:9" in caught.value.log_tail
    assert "DAGGER_KERNEL_INDEX_URL" in caught.value.remedy
    assert any("building the base" in line for line in told)
    left = [n for n in os.listdir(settings.bases_path) if n.startswith(".building")]
    assert left == []
    log.close()


def test_the_wanted_interpreter_must_work(tmp_path):
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    with pytest.raises(SettingError, match="python"):
        find_interpreter(str(broken))


def test_a_shim_that_does_not_work_is_passed_over(tmp_path):
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho 'python3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    code = (
        "from dagger_kernel.engines.local.interpreter import find_interpreter as f; "
        "print(f().executable)"
    )
    env = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "PYENV_ROOT": str(tmp_path)}
    env["HOME"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() != str(shim)


def test_a_found_interpreter_is_remembered_until_it_changes(tmp_path):
    python, memory = tmp_path / "python3.12", tmp_path / "interpreters.json"
    os.symlink(os.path.realpath(sys.executable), python)
    found = find_interpreter(str(python), Memory(memory))
    (stamp,) = json.loads(memory.read_text())
    memory.write_text(json.dumps({stamp: ["/else/python", "/else", "3.12.9"]}))
    find_interpreter.cache_clear()
    assert find_interpreter(str(python), Memory(memory)).version == "3.12.9"
    other = tmp_path / "other"
    shutil.copy(python, other)
    python.unlink()
    os.symlink(other, python)
    find_interpreter.cache_clear()
    assert find_interpreter(str(python), Memory(memory)).version == found.version


def test_what_a_script_leads_to_is_asked_each_time(tmp_path):
    script, memory = tmp_path / "python3.12", tmp_path / "interpreters.json"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    find_interpreter(str(script), Memory(memory))
    assert not memory.exists()
