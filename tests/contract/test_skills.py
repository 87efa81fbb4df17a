"""Mounted skills: there to read and import, not to change, on every engine."""

from __future__ import annotations

import os

import pytest

from dagger_kernel.sandbox.skills import store

from .conftest import text

LOOK = """
import os, subprocess, sys
from pathlib import Path
place = Path("/skills/charts")
print(sorted(p.relative_to(place).as_posix() for p in place.rglob("*")))
print((place / "SKILL.md").read_text())
import charting, deep.inner
print(charting.name(), deep.inner.N, charting.__file__)
print(subprocess.run([sys.executable, "-c", "import charting; print(charting.name())"],
                     capture_output=True, text=True).stdout, end="")
"""
SEEN = (
    "['SKILL.md', 'charting.py', 'deep', 'deep/__init__.py', 'deep/inner.py', 'run.sh']\n"
    "How to draw.\ncharts 3 /skills/charts/charting.py\ncharts\n"
)
CHANGE = """
import os, pathlib
tries = {
    "write": lambda: pathlib.Path("/skills/charts/SKILL.md").write_text("x"),
    "new": lambda: pathlib.Path("/skills/charts/new").write_text("x"),
    "beside": lambda: os.mkdir("/skills/mine"),
    "remove": lambda: os.remove("/skills/charts/SKILL.md"),
    "rename": lambda: os.rename("/skills/charts", "/skills/other"),
    "mode": lambda: os.chmod("/skills/charts/SKILL.md", 0o777),
    "away": lambda: os.rename("/skills", "/tmp/skills"),
    "link": lambda: os.link("/skills/charts/SKILL.md", "/home/sandbox/SKILL.md"),
}
for name, attempt in tries.items():
    try:
        attempt()
    except OSError:
        continue
    print("changed:", name)
print(open("/skills/charts/SKILL.md").read(), os.access("/skills/charts/run.sh", os.X_OK))
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "charts"
    (folder / "deep").mkdir(parents=True)
    (folder / "SKILL.md").write_text("How to draw.")
    (folder / "charting.py").write_text("def name():\n    return 'charts'\n")
    (folder / "deep" / "__init__.py").write_text("")
    (folder / "deep" / "inner.py").write_text("N = 3\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret")
    (folder / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo")
    return folder


def mount(bench, folder):
    skill = store(bench.blobs, folder.name, folder)
    bench.put("mount", layer=skill.digest)
    return skill


async def test_a_skill_can_be_read_and_imported(bench, folder):
    await bench.cell("x = 1")
    mount(bench, folder)
    assert text((await bench.cell(LOOK))[1]) == SEEN
    # What a cell imported and made of it is there in the next one.
    await bench.cell("import charting; made = charting.name")
    assert text((await bench.cell("print(made(), charting.name(), x)"))[1]) == "charts charts 1\n"
    await bench.engine.evict()
    assert text((await bench.cell(LOOK))[1]) == SEEN


async def test_a_skill_cannot_be_changed(bench, folder):
    await bench.cell("x = 1")
    mount(bench, folder)
    assert text((await bench.cell(CHANGE))[1]) == "How to draw. True\n"
    assert text((await bench.cell(LOOK))[1]) == SEEN


async def test_a_search_path_set_before_finds_it_too(bench, folder):
    await bench.cell("import sys; sys.path.append('/home/sandbox/lib')")
    mount(bench, folder)
    got = await bench.cell("import charting; print(charting.name(), sys.path[-2:])")
    assert text(got[1]) == "charts ['/home/sandbox/lib', '/skills/charts']\n"


async def test_many_steps_later_it_is_there(bench, folder, monkeypatch):
    monkeypatch.setattr("dagger_kernel.engines.dagger.chain.FLATTEN_EVERY", 4)
    await bench.cell("x = 1")
    mount(bench, folder)
    for _ in range(18):
        await bench.cell("x += 1")
    assert text((await bench.cell(LOOK + "print(x)"))[1]) == SEEN + "19\n"
