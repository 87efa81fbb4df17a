"""Skills of the administrator's: mounted by themselves, pinned in the log, their requirements installed once."""

import os
import shutil
import zipfile

import pytest

from dagger_kernel.errors import SkillError
from dagger_kernel.log import open_log
from dagger_kernel.sandbox.skills import store
from dagger_kernel.settings import Settings

from .conftest import Listener, run_source, text_of


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "admin" / "tools"
    folder.mkdir(parents=True)
    (folder / "tools.py").write_text("VERSION = 1\n")
    return folder


@pytest.fixture
def blobs(tmp_path):
    log = open_log(Settings.load(data_dir=str(tmp_path / "log")))
    yield log.blobs
    log.close()


def wheel(path, name="tinyskill"):
    """Write a wheel by hand: no index is needed to install it."""
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr(f"{name}.py", "WORD = 'installed'\n")
        bundle.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        bundle.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        bundle.writestr(
            f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


def require(folder, text):
    (folder / "requirements.txt").write_text(text)


async def kinds(session):
    return [str(step.kind) for step, _ in await session.steps()]


async def test_it_is_there_in_the_first_cell_and_in_the_log(opening, folder):
    session = await opening(skills=str(folder))
    assert await text_of(session, "import tools; print(tools.VERSION)") == "1\n"
    assert await text_of(session, "print(tools.VERSION)") == "1\n"
    assert await kinds(session) == ["mount", "cell", "cell"]
    (step, result), *_ = await session.steps()
    assert step.payload["name"] == "tools"
    assert len(step.payload["digest"]) == 64
    assert result.status == "ok"


async def test_a_sandbox_keeps_its_version(opening, folder):
    old = await opening(skills=str(folder))
    await text_of(old, "import tools; x = 1")
    (folder / "tools.py").write_text("VERSION = 2\n")
    new = await opening(skills=str(folder))
    assert await text_of(new, "import tools; print(tools.VERSION)") == "2\n"
    again = await opening(old.id, skills=str(folder))
    assert await text_of(again, "import importlib; print(importlib.reload(tools).VERSION)") == "1\n"
    assert await kinds(again) == ["mount", "cell", "cell"]


async def test_a_replay_needs_no_folder(opening, folder):
    session = await opening(skills=str(folder))
    await text_of(session, "import tools; x = tools.VERSION")
    await session.close()
    shutil.rmtree(folder)
    shutil.rmtree(opening.data_dir / "layers")
    again = await opening(session.id)
    assert await text_of(again, "import tools; print(tools.VERSION, x)") == "1 1\n"


async def test_the_bytes_of_a_mounted_skill_are_never_collected(opening, folder):
    session = await opening(skills=str(folder))
    await text_of(session, "import tools")
    archive = (await session.steps())[0][0].payload["digest"]
    others = {path.name for path in (opening.data_dir / "blobs").glob("??/??/*")} - {archive}
    log = open_log(session.settings)
    log.collect_blobs(older_than=-60, keep=others)
    assert log.blobs.has(archive)
    assert log.verify(session.id) == []
    log.close()


async def test_requirements_are_installed_once_for_all(opening, folder):
    wheel(folder / "tinyskill-1.0-py3-none-any.whl")
    require(folder, "/skills/tools/tinyskill-1.0-py3-none-any.whl\n")
    first = await opening(skills=str(folder))
    use = "import tinyskill; print(tinyskill.WORD)"
    assert await text_of(first, use) == "installed\n"
    assert await kinds(first) == ["mount", "cell", "cell"]
    (_, (installing, result), (cell, _)) = await first.steps()
    assert installing.payload["skill"] == "tools"
    assert result.layer
    assert cell.payload["execution_count"] == 1
    second = await opening(skills=str(folder))
    assert await text_of(second, use) == "installed\n"
    (_, (shared, taken), _) = await second.steps()
    assert shared.key == installing.key
    assert taken.usage["reused"]


async def test_a_replay_installs_the_recorded_files(opening, folder, monkeypatch):
    wheel(folder / "tinyskill-1.0-py3-none-any.whl")
    require(folder, "/skills/tools/tinyskill-1.0-py3-none-any.whl\n")
    session = await opening(skills=str(folder))
    await text_of(session, "import tinyskill; x = 1")
    ((_, _), (_, result), _) = await session.steps()
    await session.close()
    shutil.rmtree(opening.data_dir / "layers")
    again = await opening(session.id)
    assert [step.kind for step in again._tip.chain] == ["mount", "layer", "cell"]
    assert again._tip.chain[1].layer == result.layer
    assert await text_of(again, "print(tinyskill.WORD, x)") == "installed 1\n"


async def test_what_cannot_be_installed_is_told_and_cells_run(opening, folder):
    require(folder, "/skills/tools/missing-1.0-py3-none-any.whl\n")
    session = await opening(skills=str(folder))
    listener = Listener()
    await run_source(session, "import tools; print(tools.VERSION)", listener)
    assert "What the skill tools requires could not be installed: step 2" in listener.text
    assert listener.text.endswith("1\n")
    # It is tried again by the next sandbox, when the folder was repaired or the index is back.
    other = await opening(skills=str(folder))
    await run_source(other, "pass", Listener())
    assert not (await other.steps())[1][1].usage.get("reused")


async def test_a_missing_folder_is_told_once(opening, tmp_path, folder):
    session = await opening(skills=f"{tmp_path / 'gone'}:{folder}")
    listener = Listener()
    await run_source(session, "import tools; print(tools.VERSION)", listener)
    assert "The skill 'gone' is not there" in listener.text
    assert listener.text.endswith("1\n")
    assert await text_of(session, "print(2)") == "2\n"


async def test_after_a_rewind_to_the_beginning_it_is_mounted_anew(opening, folder):
    session = await opening(skills=str(folder))
    await text_of(session, "x = 1")
    await session.rewind(0)
    assert await text_of(session, "import tools; print(tools.VERSION)") == "1\n"
    assert await kinds(session) == ["mount", "cell", "rewind", "mount", "cell"]
    await session.rewind(2)
    assert await text_of(session, "import tools; print(tools.VERSION, x)") == "1 1\n"
    assert (await kinds(session))[-2:] == ["rewind", "cell"]


def test_a_version_is_its_content(blobs, folder):
    first = store(blobs, "tools", folder)
    os.utime(folder / "tools.py", (1, 1))
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "tools.pyc").write_bytes(b"x")
    assert store(blobs, "tools", folder) == first
    (folder / "tools.py").chmod(0o755)
    assert store(blobs, "tools", folder).digest != first.digest


@pytest.mark.parametrize("name", ["..", ".hidden", "a b", "a/b", "", "x" * 101, "-x"])
def test_unusable_names(blobs, folder, name):
    with pytest.raises(SkillError, match="folder's name"):
        store(blobs, name, folder)


def test_too_large(blobs, folder, monkeypatch):
    monkeypatch.setattr("dagger_kernel.sandbox.skills.MOST_BYTES", 5)
    with pytest.raises(SkillError, match="more than"):
        store(blobs, "tools", folder)


@pytest.mark.dagger
async def test_on_a_dagger_engine(opening, folder):
    wheel(folder / "tinyskill-1.0-py3-none-any.whl")
    require(folder, "/skills/tools/tinyskill-1.0-py3-none-any.whl\n")
    session = await opening(engine="dagger", skills=str(folder))
    assert (
        await text_of(session, "import tools, tinyskill; x = tinyskill.WORD; print(x)")
        == "installed\n"
    )
    await session.close()
    shutil.rmtree(folder)
    again = await opening(session.id, engine="dagger")
    assert (
        await text_of(again, "print(tools.VERSION, tinyskill.WORD, x)") == "1 installed installed\n"
    )
    assert again._tip.chain[1].kind == "layer"
