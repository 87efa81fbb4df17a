"""From a raw base to the container that every chain starts from: user, environment, runner.

What is set here is part of what the engine caches by, except the values of `VOLATILE` variables.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SettingError
from ...settings import Settings
from ..layout import CA_PLACE, HOME, RUNNER_PLACE, VENV, environment
from ..runner_source import RUNNER_SOURCE, source_digest
from . import inside

if TYPE_CHECKING:
    import dagger

USER = "1000:1000"
ROOT = "0:0"
STATE_PLACE = "/.dk"
PYTHON = f"{VENV}/bin/python"
EPOCH = "DAGGER_KERNEL_EPOCH"

VOLATILE = frozenset(
    (
        "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
        "https_proxy", "no_proxy",
    )
)  # fmt: skip
"""Where packages come from does not change what a step is: another proxy must not make every replay cold."""
OF_CA = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")

SHIPPED = {
    "dagger_kernel_runner": RUNNER_SOURCE,
    "dagger_kernel_inside": Path(inside.__file__).parent,
}
"""Packages that are put below `RUNNER_PLACE`, and where they are here."""

START = (
    "import sys; sys.path.insert(0, {place!r}); from {module} import main; "
    "sys.path.pop(0); sys.exit(main())"
)


def runner_command(socket: str, nonce: str) -> list[str]:
    """Return the command of a room. ``-P``: the user's files must not stand in for the runner's."""
    code = START.format(place=RUNNER_PLACE, module="dagger_kernel_runner.__main__")
    return [PYTHON, "-P", "-c", code, "--socket", socket, "--nonce", nonce, "--alone"]


def inside_command(python: str, *arguments: str) -> list[str]:
    """Return the command of a trusted helper (`inside`), for root, with the base's own interpreter."""
    code = START.format(place=RUNNER_PLACE, module="dagger_kernel_inside.command")
    return [python, "-I", "-S", "-c", code, *arguments]


def sandbox_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of cells: as on the local engine, but for the certificates.

    This machine's own bundle is the local engine's default; here the base has one, and only a bundle that
    the administrator names replaces it.
    """
    env = environment(settings, network="host")
    if not settings.ca_bundle:
        for name in OF_CA:
            env.pop(name, None)
    return env


def with_environment(container: dagger.Container, settings: Settings) -> dagger.Container:
    """Set user, directory, environment and certificates.

    Raises
    ------
    SettingError
        The CA bundle cannot be read.
    """
    container = container.with_user(USER).with_workdir(HOME)
    for name, value in sandbox_environment(settings).items():
        if name in VOLATILE:
            container = container.with_volatile_variable(name, value)
        else:
            container = container.with_env_variable(name, value)
    if settings.ca_bundle:
        try:
            text = Path(settings.ca_bundle).read_text("ascii", "replace")
        except OSError as error:
            raise SettingError(
                "ca_bundle", settings.ca_bundle, f"a readable PEM file ({error.strerror})"
            ) from None
        container = container.with_new_file(CA_PLACE, text, permissions=0o644)
    return container


def stage_runner(directory: Path) -> Path:
    """Write what is shipped, without caches, below a directory; return where."""
    place = directory / f"runner-{shipped_digest()[:16]}"
    if not place.is_dir():
        ignore = shutil.ignore_patterns("__pycache__")
        stage = place.with_suffix(".new")
        for name, source in SHIPPED.items():
            shutil.copytree(source, stage / name, ignore=ignore)
        for folder, _folders, files in os.walk(stage):
            os.chmod(folder, 0o755)  # noqa: S103 - modes count; what contains it is private
            for name in files:
                os.chmod(os.path.join(folder, name), 0o644)
        os.rename(stage, place)
    return place


def shipped_digest() -> str:
    """Return the content hash of runner and `inside`."""
    digests = "".join(source_digest(source) for source in SHIPPED.values())
    return hashlib.sha256(digests.encode()).hexdigest()


def with_runner(
    container: dagger.Container, client: dagger.Client, directory: Path
) -> dagger.Container:
    """Put the runner in, and the directory that it keeps state in; compile what every room imports."""
    shipped = client.host().directory(os.fspath(stage_runner(directory)))
    return (
        container.with_directory(STATE_PLACE, client.directory(), owner=USER)
        .with_directory(RUNNER_PLACE, shipped, owner=ROOT)
        .with_user(ROOT)
        .with_exec(inside_command(PYTHON, "compile", RUNNER_PLACE))
        .with_user(USER)
    )
