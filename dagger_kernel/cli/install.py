"""``dagger-kernel install``: register the kernelspecs where Jupyter looks."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from . import output

SPECS = {"dagger": "python", "dagger-bash": "bash"}
"""Names of the kernels, and of their directories in the source tree's ``kernelspec/``."""


def run(
    *, user: bool, sys_prefix: bool, prefix: Path | None, env: Sequence[str], as_json: bool
) -> None:
    """Install every kernelspec and print where."""
    if user + sys_prefix + (prefix is not None) > 1:
        raise typer.BadParameter("give one of --user, --sys-prefix and --prefix")
    target = Path(sys.prefix) if sys_prefix else prefix
    variables = dict(_variable(text) for text in env)
    installed = [
        {"name": name, "path": _install(name, source, target, variables)}
        for name, source in sources().items()
    ]
    if not installed:
        raise FileNotFoundError(2, "No kernelspec came with this installation", str(_tree()))
    if as_json:
        output.print_json({"installed": installed})
        return
    for spec in installed:
        print(f"Installed the kernel {spec['name']} in {spec['path']}")
    print(
        "Pick it in Jupyter's list of kernels, or: jupyter execute --kernel_name=dagger FILE.ipynb"
    )


def sources() -> dict[str, Path]:
    """Return the directory of each kernelspec: the source tree's, else the wheel's data."""
    found = {}
    for name, folder in SPECS.items():
        for directory in (_tree() / folder, *(data / name for data in _data_directories())):
            if (directory / "kernel.json").is_file():
                found[name] = directory
                break
    return found


def _tree() -> Path:
    return Path(__file__).resolve().parents[2] / "kernelspec"


def _data_directories() -> Iterator[Path]:
    """Where ``pip install`` may have put the wheel's data: the environment, ``--user``."""
    scheme = sysconfig.get_preferred_scheme("user")
    for root in (sys.prefix, sysconfig.get_path("data"), sysconfig.get_path("data", scheme)):
        yield Path(root) / "share" / "jupyter" / "kernels"


def _install(name: str, source: Path, prefix: Path | None, variables: dict[str, str]) -> str:
    from jupyter_client.kernelspec import KernelSpecManager

    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / name
        shutil.copytree(source, copy)
        path = copy / "kernel.json"
        path.chmod(0o644)
        spec: dict[str, Any] = json.loads(path.read_text("utf-8"))
        # "python" would be the Jupyter server's interpreter; the one that has this package is ours.
        spec["argv"][0] = sys.executable
        if variables:
            spec["env"] = {**spec.get("env", {}), **variables}
        path.write_text(json.dumps(spec, indent=1) + "\n", "utf-8")
        return str(
            KernelSpecManager().install_kernel_spec(
                str(copy), name, user=prefix is None, prefix=prefix and str(prefix)
            )
        )


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"--env takes NAME=VALUE, not {text!r}")
    return name, value
