"""Whether code is a complete statement, answered in the kernel process.

Parsing never runs the code. The waiting room answers when it is ready, because its Python may
be another version; this is the answer when there is none.
"""

from __future__ import annotations

import os
import subprocess
import warnings
from typing import Any

from ..steps import Language

PARSE_SECONDS = 2.0


def completeness(code: str, language: Language) -> dict[str, Any]:
    """Return the content of an ``is_complete_reply``."""
    if language is Language.BASH:
        return _bash(code)
    return _python(code)


def _python(code: str) -> dict[str, Any]:
    from IPython.core.inputtransformer2 import TransformerManager

    with warnings.catch_warnings():
        # A SyntaxWarning belongs to the run, not to the question whether to run.
        warnings.simplefilter("ignore")
        status, indent = TransformerManager().check_complete(code)
    if status == "incomplete":
        return {"status": status, "indent": " " * (indent or 0)}
    return {"status": status}


def _bash(code: str) -> dict[str, Any]:
    if code.endswith(("\\\n", "\\")):
        return {"status": "incomplete", "indent": ""}
    try:
        # -n reads without running; no start-up files, an empty environment.
        done = subprocess.run(
            ["bash", "--norc", "--noprofile", "-n"],
            input=code.encode("utf-8", "surrogateescape"),
            env={"LC_ALL": "C", "PATH": os.defpath},
            capture_output=True,
            timeout=PARSE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return {"status": "unknown"}
    complaint = done.stderr.decode("utf-8", "replace")
    if "unexpected end of file" in complaint or "unexpected EOF" in complaint:
        return {"status": "incomplete", "indent": "  "}
    if "here-document" in complaint and "delimited by end-of-file" in complaint:
        return {"status": "incomplete", "indent": ""}
    return {"status": "invalid" if done.returncode else "complete"}
