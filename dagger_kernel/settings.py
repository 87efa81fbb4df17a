"""Every setting once: name, default, unit, environment variable, help.

A setting is read, in this order, from the keyword given in code, from the environment
(``DAGGER_KERNEL_<NAME>``), from the user's config file (``dagger_kernel.toml`` in the platform's
config directory, or ``DAGGER_KERNEL_CONFIG``) and from the default. What the administrator writes into
``/etc/dagger_kernel.toml`` under ``[maximum]`` (limits) or ``[fixed]`` (any setting) cannot be overridden.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import platformdirs

from .errors import SettingError
from .steps import Limits

ADMIN_FILE = Path("/etc/dagger_kernel.toml")
PREFIX = "DAGGER_KERNEL_"


def _setting(default: Any, help_text: str, unit: str = "", choices: tuple[str, ...] = ()) -> Any:
    """Declare a setting; the field's name gives the environment variable."""
    metadata = {"help": help_text, "unit": unit, "choices": choices}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one process; see ``docs/settings.md`` for the table of all of them."""

    enabled: bool = _setting(True, "Whether cells may run at all.")
    data_dir: str = _setting(
        lambda: platformdirs.user_data_dir("dagger_kernel"),
        "Directory of the log and the blobs; caches lie below it in layers/ and bases/.",
    )
    database_url: str = _setting(
        "", "SQLAlchemy URL of the log; empty: SQLite in the data directory."
    )
    blob_url: str = _setting(
        "", "fsspec URL of the blob store; empty: blobs/ in the data directory."
    )
    owner: str = _setting("", "Whose sandboxes these are; empty: the operating system's user.")
    sandbox: str = _setting("", "Id of the sandbox to continue; empty: see the user guide.")
    engine: str = _setting(
        "auto", "Which engine runs the cells.", choices=("auto", "dagger", "local")
    )
    allowed_engines: str = _setting(
        "dagger local", "Engines that may run cells, separated by spaces."
    )
    network: str = _setting(
        "proxy",
        "Network of the local engine's cells: proxy is the public Internet by HTTP(S) only; host is "
        "everything this machine reaches, its own services too.",
        choices=("none", "proxy", "host"),
    )
    network_allow: str = _setting(
        "",
        "Domains that cells may reach through the proxy, separated by spaces; empty: all public.",
    )
    attachments_folder: str = _setting(
        "attachments",
        "Folder beside the notebook whose files are put into the sandbox before a cell; empty: none.",
    )
    cell_attachments: bool = _setting(
        True, "Put files attached to the notebook's Markdown cells into the sandbox."
    )
    upload_folders: str = _setting(
        "",
        "Folders besides the notebook's own that `%sandbox upload` may read, separated by colons.",
    )
    skills: str = _setting(
        "",
        "Folders that every sandbox finds read-only at `/skills/NAME`, separated by colons.",
    )
    export_exclude: str = _setting(
        "pyproject.toml uv.lock", "Patterns of files that are not exported, separated by spaces."
    )
    standby: bool = _setting(True, "Prepare the next cell's room while the user reads.")
    standby_idle_seconds: float = _setting(
        600.0, "A standby room nobody used for this long is dropped.", "seconds"
    )
    standby_max: int = _setting(10, "Standby rooms per engine and process.", "rooms")
    recompute: bool = _setting(
        False,
        "Whether a cell that uses a lost variable first runs again the cells that made it, if they "
        "changed no files.",
    )
    reuse: str = _setting(
        "none",
        "shared: equal cells on equal states run once, across sandboxes.",
        choices=("none", "shared"),
    )
    max_running: int = _setting(10, "Steps that run at one time on this engine.", "steps")
    max_queued: int = _setting(50, "Steps that may wait for a place; more are refused.", "steps")

    cpu_seconds: float = _setting(30.0, "CPU time of one cell.", "seconds")
    memory_bytes: int = _setting(1 << 30, "Memory of one cell; suffixes KiB, MiB, GiB.", "bytes")
    wall_seconds: float = _setting(120.0, "Wall-clock time of one cell.", "seconds")
    output_bytes: int = _setting(256 << 10, "Text output shown per cell.", "bytes")
    kept_output_bytes: int = _setting(16 << 20, "Full text kept when output is cut.", "bytes")
    file_bytes: int = _setting(16 << 20, "Size of one exported or uploaded file.", "bytes")
    export_files: int = _setting(50, "Files exported by one cell.", "files")
    processes: int = _setting(256, "Processes and threads of one cell.", "processes")
    open_files: int = _setting(1024, "Open files of one process.", "files")
    disk_bytes: int = _setting(4 << 30, "Bytes one cell may write.", "bytes")
    cache_bytes: int = _setting(
        20 << 30, "Layers of the local engine that are kept; the least recently used go.", "bytes"
    )
    layer_bytes: int = _setting(
        64 << 20, "Largest stored layer difference of an interrupted step.", "bytes"
    )

    python: str = _setting(
        "", "Interpreter of the local base; empty: Python 3.12 or the running one."
    )
    packages: str = _setting(
        "numpy pandas httpx matplotlib", "Packages of the base, separated by spaces."
    )
    index_url: str = _setting("", "Package index for the base and for cells; empty: uv's default.")
    proxy: str = _setting("", "HTTP(S) proxy for the base and for cells.")
    ca_bundle: str = _setting("", "CA bundle (PEM file) for the base and for cells.")

    runner_host: str = _setting(
        "", "Address of the Dagger engine, such as unix:///run/dagger.sock."
    )
    cli_bin: str = _setting("", "Path of the dagger command; empty: search PATH.")
    base_image: str = _setting("", "Pre-baked base image, by digest.")
    base_path: str = _setting(
        "", "Pre-baked base: an OCI archive or a root directory on this machine."
    )
    connect_seconds: float = _setting(
        20.0, "How long a Dagger engine may take to answer.", "seconds"
    )

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Self:
        """Read the settings.

        Raises
        ------
        SettingError
            A value cannot be used, or a config file is not TOML.
        """
        environ = os.environ if environ is None else environ
        user = _read_toml(config_paths(environ)[0])
        fixed, maximum = _administrators("fixed"), _administrators("maximum")
        values: dict[str, Any] = {}
        for item in fields(cls):
            for source in (
                fixed,
                overrides,
                {item.name: environ.get(PREFIX + item.name.upper()) or None},
                user,
            ):
                if source.get(item.name) is not None:
                    values[item.name] = parse(item.name, source[item.name])
                    break
            if item.name in maximum and item.name not in fixed:
                default = getattr(cls, item.name, None)
                current = values.get(item.name, default)
                values[item.name] = min(current, parse(item.name, maximum[item.name]))
        settings = cls(**values)
        if (name := settings.limits.unusable()) is not None:
            raise SettingError(name, getattr(settings, name), "more than zero")
        return settings

    @property
    def limits(self) -> Limits:
        """The limits in force when a cell names none."""
        return Limits(**{item.name: getattr(self, item.name) for item in fields(Limits)})

    @property
    def data_path(self) -> Path:
        """The data directory."""
        return Path(self.data_dir).expanduser()

    @property
    def layers_path(self) -> Path:
        """Where the local engine keeps layers; may be deleted at any time."""
        return self.data_path / "layers"

    @property
    def bases_path(self) -> Path:
        """Where the local engine keeps bases; may be deleted at any time."""
        return self.data_path / "bases"


def config_paths(environ: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """Return where the user's config file is (if there is one), and the administrator's."""
    environ = os.environ if environ is None else environ
    user = environ.get(PREFIX + "CONFIG") or os.path.join(
        platformdirs.user_config_dir("dagger_kernel"), "dagger_kernel.toml"
    )
    return Path(user), ADMIN_FILE


def administrators_secret(name: str) -> str | None:
    """Return a secret that the administrator provides: the text of a file named under ``[secrets]``.

    Raises
    ------
    SettingError
        The file cannot be read.
    """
    path = _read_toml(ADMIN_FILE).get("secrets", {}).get(name)
    if path is None:
        return None
    try:
        return Path(str(path)).read_text("utf-8").removesuffix("\n")
    except (OSError, ValueError) as error:
        raise SettingError(
            f"secrets.{name}", str(path), f"a readable file ({type(error).__name__})"
        ) from None


def maximum_limits() -> Limits:
    """Return the administrator's maximum (no maximum: very large)."""
    maximum = _administrators("maximum")
    values = {
        item.name: parse(item.name, maximum[item.name]) if item.name in maximum else 1 << 62
        for item in fields(Limits)
    }
    return Limits(**values)


def parse(name: str, value: Any) -> Any:
    """Return a setting's value from text or TOML.

    Raises
    ------
    SettingError
        The value does not fit the setting.
    """
    by_name = {item.name: item for item in fields(Settings)}
    item = by_name[name]
    choices = item.metadata["choices"]
    if choices and value not in choices:
        raise SettingError(name, value, "one of " + ", ".join(choices))
    try:
        if item.type == "bool":
            return _parse_bool(value)
        if item.type == "int":
            return _not_negative(parse_size(value))
        if item.type == "float":
            return _not_negative(float(value))
    except (TypeError, ValueError):
        raise SettingError(name, value, f"a {item.type} ({item.metadata['unit']})") from None
    return str(value)


def _parse_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError(value)


def _not_negative(number: float) -> Any:
    # "Not a number" compares false with every maximum, and -1 is no limit to the operating system.
    if not 0 <= number < float("inf"):
        raise ValueError(number)
    return number


def parse_size(value: Any) -> int:
    """Return a count or size: ``512``, ``64KiB``, ``16 MiB``, ``1GiB``, ``1g``."""
    if isinstance(value, int):
        return value
    text = str(value).strip().lower().removesuffix("ib").removesuffix("b").strip()
    factor = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}.get(text[-1:], 0)
    return int(float(text[:-1]) * factor) if factor else int(text)


def _administrators(table: str) -> dict[str, Any]:
    """Return a table of the administrator's file. A misspelt name there must not be a missing rule."""
    found = _read_toml(ADMIN_FILE).get(table, {})
    for name in found.keys() - {item.name for item in fields(Settings)}:
        raise SettingError(f"{table}.{name}", found[name], f"a setting's name in {ADMIN_FILE}")
    return dict(found)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingError(
            str(path), type(error).__name__, f"a readable TOML file ({error})"
        ) from None
