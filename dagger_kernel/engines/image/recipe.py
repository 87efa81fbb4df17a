"""The base as data: what the Dockerfile beside this file says, and what the Dagger engine builds itself.

A test holds the two equal: `dockerfile` of the default packages is the Dockerfile's text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..layout import HOME, RUNNER_NEEDS, VENV

IMAGE = "python:3.12-slim-bookworm"
SYSTEM_PACKAGES = ("bash", "ca-certificates", "curl", "git", "jq", "less", "procps", "xz-utils")
DEFAULT_PACKAGES = ("numpy", "pandas", "httpx", "matplotlib")
MARKER = "/etc/dagger-kernel-base.json"
"""A pre-baked image is known by this file: an image named by mistake is refused."""
FORMAT = 1
USER = "1000:1000"

ENVIRONMENT = {
    "HOME": HOME,
    "PATH": f"{VENV}/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
    "VIRTUAL_ENV": VENV,
    "LANG": "C.UTF-8",
    "UV_COMPILE_BYTECODE": "1",
    "UV_LINK_MODE": "copy",
    "UV_NO_CACHE": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}


@dataclass(frozen=True, slots=True)
class Command:
    """One shell command of the build: run by whom, and what for."""

    user: str
    text: str
    why: str


def marker() -> str:
    """Return the text of the marker file."""
    return json.dumps({"dagger_kernel_base": FORMAT})


def commands(packages: Sequence[str], *, locked: bool = False) -> list[Command]:
    """Return the commands that make the base of an `IMAGE`.

    Parameters
    ----------
    packages
        Of the setting ``packages``.
    locked
        Whether ``pyproject.toml`` and ``uv.lock`` are there already: then they decide.
    """
    system = " ".join(SYSTEM_PACKAGES)
    names = " ".join((*packages, *RUNNER_NEEDS))
    project = "uv sync --frozen" if locked else f"uv init --bare --name sandbox && uv add {names}"
    warm = "import matplotlib.pyplot, pandas" if {"matplotlib", "pandas"} <= {*packages} else "pass"
    return [
        Command(
            "0:0",
            "apt-get update && apt-get install -y --no-install-recommends "
            f"{system} && rm -rf /var/lib/apt/lists/*",
            "what cells expect of a shell",
        ),
        Command(
            "0:0",
            "pip install --no-cache-dir uv",
            "the package manager, for building and for cells",
        ),
        Command(
            "0:0",
            f"useradd --uid 1000 --user-group --no-create-home --home-dir {HOME} --shell /bin/bash sandbox"
            f" && install -d -o 1000 -g 1000 {HOME} /.dk",
            "the one user, its directory and the runner's",
        ),
        Command(USER, f"cd {HOME} && {project}", "the project that cells run in"),
        Command(
            USER,
            f"{VENV}/bin/python -c '{warm}'",
            "what libraries write at their first import, such as the font cache",
        ),
        Command("0:0", f"echo '{marker()}' > {MARKER}", "how the kernel knows the image"),
    ]


def dockerfile(packages: Sequence[str] = DEFAULT_PACKAGES) -> str:
    """Return the text of the Dockerfile."""
    lines = [
        "# The pre-baked base of dagger_kernel. Build and push it, then set DAGGER_KERNEL_BASE_IMAGE to its",
        "# digest. engines/image/recipe.py says the same; a test keeps the two equal.",
        f"FROM {IMAGE}",
    ]
    lines += [f"ENV {name}={value}" for name, value in ENVIRONMENT.items()]
    user = ""
    for command in commands(packages):
        lines += ["", f"# {command.why}"]
        if command.user != user:
            user = command.user
            lines.append(f"USER {user}")
        lines.append(f"RUN {command.text}")
    lines += ["", f"USER {USER}", f"WORKDIR {HOME}"]
    return "\n".join(lines) + "\n"
