"""Links lead somewhere, examples run, and no file says where it was written."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def _anchors(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(goal), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_of_make_exist(page):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for name in re.findall(r"`make (\w+)|^\$ make (\w+)", page.read_text("utf-8"), re.MULTILINE):
        assert name[0] or name[1] in targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_compile(page):
    for code in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        if not code.lstrip().startswith(("!", "%")):
            compile(code, str(page), "exec")


def test_no_committed_file_names_a_machine():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False
    ).stdout
    names = [name for name in listed.decode().split("\0") if name]
    if not names:
        pytest.skip("not a git checkout")
    # Written in pieces, so that this file does not find itself.
    words = [
        "/wo" + "rk/",
        "py" + "pi.org",
        "pythonhosted" + ".org",
        "registry.npm" + "js",
        "/ro" + "ot/.py",
    ]
    found = []
    for name in names:
        path = ROOT / name
        if path.suffix in (".png", ".ico", ".csv") or not path.is_file():
            continue
        text = path.read_text("utf-8", errors="ignore")
        found += [f"{name}: {word}" for word in words if word in text]
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    for name in re.findall(
        r"(?<![/\w])(?:dagger_kernel|scripts|binder|tests)/[\w./-]*\w", page.read_text("utf-8")
    ):
        if name.rstrip("/") != "dagger_kernel/labextension":
            assert (ROOT / name).exists(), f"{page.name} names {name}"
