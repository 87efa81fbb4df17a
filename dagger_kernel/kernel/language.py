"""What a client is told about the language: highlighting, file names, converters."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import dataclass
from typing import Any

from ..steps import Language


@dataclass(frozen=True)
class LanguageFace:
    """One language as Jupyter shows it."""

    language: Language
    display_name: str
    banner: str
    info: dict[str, Any]
    links: tuple[tuple[str, str], ...] = ()


def language_face(language: Language, version: str = "") -> LanguageFace:
    """Return the face of a language; ``version`` overrides that of this machine."""
    if language is Language.BASH:
        return _bash(version)
    return _python(version)


def _python(version: str) -> LanguageFace:
    version = version or platform.python_version()
    major = int(version.split(".")[0])
    return LanguageFace(
        language=Language.PYTHON,
        display_name="Python (Dagger sandbox)",
        banner=f"Python {version} in a Dagger sandbox. Every cell is a logged step; "
        "%sandbox help explains.",
        info={
            "name": "python",
            "version": version,
            "mimetype": "text/x-python",
            "file_extension": ".py",
            "pygments_lexer": f"ipython{major}",
            "codemirror_mode": {"name": "ipython", "version": major},
            "nbconvert_exporter": "python",
        },
        links=(
            ("Python Reference", f"https://docs.python.org/{'.'.join(version.split('.')[:2])}"),
            ("IPython Reference", "https://ipython.org/documentation.html"),
        ),
    )


def _bash(version: str) -> LanguageFace:
    version = version or _bash_version()
    return LanguageFace(
        language=Language.BASH,
        display_name="Bash (Dagger sandbox)",
        banner=f"Bash {version} in a Dagger sandbox. Every cell is a logged step; "
        "%sandbox help explains.",
        info={
            "name": "bash",
            "version": version,
            "mimetype": "text/x-sh",
            "file_extension": ".sh",
            "pygments_lexer": "bash",
            "codemirror_mode": "shell",
            "nbconvert_exporter": "script",
        },
        links=(("Bash Reference", "https://www.gnu.org/software/bash/manual/"),),
    )


def _bash_version() -> str:
    try:
        text = subprocess.run(
            ["bash", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return "5"
    found = re.search(r"version (\d+(?:\.\d+)*)", text)
    return found.group(1) if found else "5"
