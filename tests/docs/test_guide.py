"""The user guide knows every magic; the README's example does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from dagger_kernel.kernel.magics.commands import COMMANDS
from dagger_kernel.kernel.magics.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/user-guide.md").read_text("utf-8")


def test_every_command_of_the_magic_is_listed():
    listed = set(re.findall(r"^\| `%sandbox (\w+)", GUIDE, re.MULTILINE)) | {"status"}
    assert listed == set(COMMANDS)


def test_options_in_the_guide_exist():
    for line in re.findall(r"`%%sandbox ([^`]*)`", GUIDE):
        for option in re.findall(r"--[\w-]+", line):
            assert option in OPTIONS


def test_the_readmes_example_prints_what_it_says(fresh_data_dir):
    text = (ROOT / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    expected = re.findall(r"print\(.*\)  # (\w+)", code)[:2]
    assert len(code.splitlines()) <= 12
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "DAGGER_KERNEL_DATA_DIR": str(fresh_data_dir)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split()
    assert printed[:2] == expected
    assert re.fullmatch(r"[0-9a-f]{32}", printed[2])
