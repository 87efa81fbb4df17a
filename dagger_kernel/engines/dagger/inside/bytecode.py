"""Byte-compile what every fresh interpreter imports.

Images of Python come without compiled standard library, and the sandbox's user may not write beside it: each
room would compile what it imports again, about 0.3 s a cell.
"""

from __future__ import annotations

import compileall
import re
import sysconfig

UNUSED = re.compile(r"/(test|tests|idlelib|lib2to3|turtledemo|site-packages|dist-packages)(/|$)")
"""Parts of the standard library's directory that no room imports, or that are not its own."""


def library() -> str:
    """Return the standard library's directory."""
    return sysconfig.get_path("stdlib")


def compile_bytecode(runner: str, stdlib: str) -> bool:
    """Compile the runner and the standard library, as far as they are not yet; tell whether the runner could be.

    A library that cannot be compiled (read-only, or with a file for another Python) is slower and nothing else.
    """
    compileall.compile_dir(stdlib, quiet=2, rx=UNUSED)
    return bool(compileall.compile_dir(runner, quiet=1))
