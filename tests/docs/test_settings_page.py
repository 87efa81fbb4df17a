"""The table of settings is what ``settings.py`` declares."""

import importlib.util
from dataclasses import fields
from pathlib import Path

from dagger_kernel.settings import PREFIX, Settings
from dagger_kernel.steps import Limits

ROOT = Path(__file__).resolve().parents[2]


def _script():
    spec = importlib.util.spec_from_file_location("table", ROOT / "scripts/settings_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_current_table():
    script = _script()
    text = script.PAGE.read_text("utf-8")
    assert script.page(text) == text, "run `make docs`"


def test_every_setting_has_a_row_with_its_variable_and_help():
    rows = {line.split("|")[1].strip(" `"): line for line in _script().table().splitlines()}
    for item in fields(Settings):
        assert f"`{PREFIX}{item.name.upper()}`" in rows[item.name]
        assert item.metadata["help"] in rows[item.name]
        if item.metadata["unit"]:
            assert f"| {item.metadata['unit']} |" in rows[item.name]


def test_every_limit_of_a_step_is_a_setting():
    names = {item.name for item in fields(Settings)}
    assert {item.name for item in fields(Limits)} <= names


def test_the_guide_tells_the_real_default_limits():
    text = (ROOT / "docs/user-guide.md").read_text("utf-8")
    limits = Limits()
    for expected in (
        f"{limits.cpu_seconds:g} s",
        f"{limits.wall_seconds:g} s",
        f"{limits.memory_bytes >> 30} GiB",
        f"{limits.output_bytes >> 10} KiB",
        f"{limits.file_bytes >> 20} MiB",
    ):
        assert f"| {expected} |" in text


def test_every_variable_that_the_documentation_names_exists():
    import re

    known = {PREFIX + item.name.upper() for item in fields(Settings)}
    known |= {PREFIX + "CONFIG", PREFIX + "DEBUG"}
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("binder/*")]
    for page in pages:
        for name in re.findall(r"DAGGER_KERNEL_[A-Z_]+[A-Z]", page.read_text("utf-8")):
            assert name in known, f"{page.name} names {name}"
