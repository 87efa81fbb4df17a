"""Hatch's hook: builds the JupyterLab panel where that is possible and puts it into the wheel.

Users never need Node: wheels and source archives bring the built panel along. From a checkout it is
built by whoever has Node 20 or newer and reaches the npm registry. Where either is missing, the
package is installed without the panel and says so: the kernel must be installable anywhere.

``SKIP_JUPYTER_BUILDER=1``
    Do not build; a built panel is still packed.
``DAGGER_KERNEL_PANEL=required``
    Fail instead of leaving the panel out. For releases.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # the browser tests use the functions below where no build goes on
    BuildHookInterface = object

SOURCES = ("package.json", "yarn.lock", "tsconfig.json", "src", "style", "schema")
STAMP = "sources.sha256"
TARGET = "share/jupyter/labextensions/dagger-kernel-lab"


class PanelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds ``dagger_kernel/labextension`` when it does not fit the sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build if needed, then add what there is."""
        del version
        root = Path(self.root)
        source, output = root / "labextension", root / "dagger_kernel" / "labextension"
        if not is_current(source, output):
            self._build(source, output)
        if (output / STAMP).exists() and self.target_name == "wheel":
            shared = build_data.setdefault("shared_data", {})
            shared[str(output)] = TARGET
            shared[str(source / "install.json")] = f"{TARGET}/install.json"

    def _build(self, source: Path, output: Path) -> None:
        reason = why_not()
        if not reason:
            self.app.display_info(
                "Building the JupyterLab panel (a minute or two the first time) ..."
            )
            reason = build(source, output)
        if not reason:
            return
        if os.environ.get("DAGGER_KERNEL_PANEL") == "required":
            raise RuntimeError(f"the JupyterLab panel was not built: {reason}")
        # What fits older sources would be a lie about this version.
        shutil.rmtree(output, ignore_errors=True)
        self.app.display_warning(f"Installing without the JupyterLab panel: {reason}")


def is_current(source: Path, output: Path) -> bool:
    """Whether the built panel was made from these sources."""
    stamp = output / STAMP
    return stamp.exists() and stamp.read_text("ascii").strip() == digest(source)


def digest(source: Path) -> str:
    """Return the digest of everything the built panel is made from."""
    hasher = hashlib.sha256()
    for name in SOURCES:
        path = source / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file():
                hasher.update(f"{file.relative_to(source).as_posix()}\0".encode())
                hasher.update(hashlib.sha256(file.read_bytes()).digest())
    return hasher.hexdigest()


def why_not() -> str:
    """Return why the panel cannot be built here; empty: it can."""
    if os.environ.get("SKIP_JUPYTER_BUILDER"):
        return "SKIP_JUPYTER_BUILDER is set"
    if shutil.which("jlpm") is None:
        return "jlpm was not found (it comes with jupyter-builder)"
    node = shutil.which("node")
    if node is None:
        return "Node 20 or newer was not found"
    asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = asked.stdout.strip().lstrip("v").partition(".")[0]
    if not major.isdigit() or int(major) < 20:
        return f"Node is {asked.stdout.strip() or 'broken'}; 20 or newer is needed"
    return ""


def build(source: Path, output: Path) -> str:
    """Build the panel; return why that failed, empty if it did not."""
    for arguments in (["install", "--immutable"], ["run", "build:prod"]):
        done = subprocess.run(
            ["jlpm", *arguments], cwd=source, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            tail = (done.stdout + done.stderr).strip().splitlines()[-5:]
            return f"jlpm {arguments[0]} failed: " + " / ".join(tail)
    (output / STAMP).write_text(digest(source) + "\n", "ascii")
    return ""
