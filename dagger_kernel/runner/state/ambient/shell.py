"""What the user told IPython: magics, aliases, extensions, options, hooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..reducers.layout import per_class
from .base import Provider

if TYPE_CHECKING:
    from collections.abc import Callable

_SIMPLE = (str, int, float, bool, type(None))
_OWN_TRAITS = frozenset({"execution_count", "colors"})


def prime() -> None:
    """Look classes of options up once, in a process which will be forked."""
    shell = current_shell()
    for item in ShellOptions._configurables(shell) if shell is not None else ():
        _config_names(type(item))


def current_shell() -> Any:
    """IPython's shell, if this process has one."""
    module = sys.modules.get("IPython.core.getipython")
    return module.get_ipython() if module is not None else None


@per_class
def _config_names(kind: Any) -> frozenset[str]:
    """Names of the configurable options of a class."""
    return frozenset(kind.class_trait_names(config=True)) - _OWN_TRAITS


def _sources(reloader: Any) -> dict[str, str]:
    """What autoreload compares an edited file with."""
    found: dict[str, str] = getattr(
        getattr(reloader, "deduper_reloader", None), "source_by_modname", {}
    )
    return found


class ShellOptions(Provider):
    """Aliases, extensions, ``__future__`` flags and configurable options."""

    name = "shell"
    module = "IPython.core.getipython"

    def __init__(self, modules: Callable[[], set[str]], load_modules: Callable[[], None]) -> None:
        self._modules = modules
        self._load_modules = load_modules

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _configurables(shell: Any) -> list[Any]:
        found = [shell, *shell.configurables]
        formatter = shell._trait_values.get("display_formatter")
        if formatter is not None:
            found += [formatter, *formatter._trait_values.get("formatters", {}).values()]
        unique: dict[int, Any] = {id(item): item for item in found}
        return list(unique.values())

    def _now(self) -> dict[str, Any]:
        shell = current_shell()
        if shell is None:
            return {}
        options: dict[str, Any] = {}
        for item in self._configurables(shell):
            # Only what was set: asking every trait for its value makes all the defaults.
            names = _config_names(type(item))
            for name, value in item._trait_values.items():
                if name not in names:
                    continue
                plain = {"set": sorted(map(str, value))} if isinstance(value, set) else value
                if isinstance(plain, _SIMPLE) or plain is not value:
                    options[f"{type(item).__name__}.{name}"] = plain
        autoreload = self._autoreload(shell)
        return {
            "aliases": dict(shell.alias_manager.aliases),
            "extensions": sorted(shell.extension_manager.loaded),
            "flags": shell.compile.flags,
            # IPython puts paths and texts into it.
            "directories": [str(path) for path in shell.user_ns.get("_dh", [])],
            "stack": [str(path) for path in shell.dir_stack],
            "options": options,
            "xmode": getattr(getattr(shell, "InteractiveTB", None), "mode", None),
            "pdb": bool(getattr(shell, "call_pdb", False)),
            "autoreload": autoreload,
        }

    def _autoreload(self, shell: Any) -> list[Any] | None:
        for magics in shell.magics_manager.registry.values():
            reloader = getattr(magics, "_reloader", None)
            if reloader is not None:
                return [
                    bool(reloader.enabled),
                    bool(reloader.check_all),
                    bool(getattr(reloader, "autoload_obj", False)),
                    {k: v for k, v in reloader.modules_mtimes.items() if k in self._modules()},
                    {k: v for k, v in _sources(reloader).items() if k in self._modules()},
                ]
        return None

    def capture(self) -> Any:
        now = self._now()
        found: dict[str, Any] = {}
        for part, value in now.items():
            base = self._base.get(part)
            if part == "options":
                changed = {k: v for k, v in value.items() if base is None or base.get(k) != v}
                if changed:
                    found[part] = changed
            elif value != base:
                found[part] = value
        return found or None

    def restore(self, value: Any) -> None:
        shell = current_shell()
        if shell is None:
            return
        for extension in value.get("extensions", ()):
            if extension not in shell.extension_manager.loaded:
                try:
                    # By the short name, by which the user unloads and reloads it.
                    name = extension.removeprefix("IPython.extensions.")
                    shell.extension_manager.load_extension(name)
                except Exception:
                    continue
        if "aliases" in value:
            for name in set(dict(shell.alias_manager.aliases)) - set(value["aliases"]):
                shell.alias_manager.undefine_alias(name)
            for name, command in value["aliases"].items():
                shell.alias_manager.soft_define_alias(name, command)
        if "flags" in value:
            shell.compile.flags = value["flags"]
        if "directories" in value and "_dh" in shell.user_ns:
            shell.user_ns["_dh"][:] = value["directories"]
        shell.dir_stack[:] = value.get("stack", [])
        for item in self._configurables(shell):
            for option, saved in value.get("options", {}).items():
                owner, _, name = option.partition(".")
                if owner != type(item).__name__ or not item.has_trait(name):
                    continue
                setting = saved
                if isinstance(setting, dict) and set(setting) == {"set"}:
                    setting = set(setting["set"])
                try:
                    setattr(item, name, setting)
                except Exception:
                    continue
        if value.get("xmode"):
            shell.InteractiveTB.set_mode(value["xmode"])
        if "pdb" in value:
            shell.call_pdb = value["pdb"]
        if value.get("autoreload"):
            for magics in shell.magics_manager.registry.values():
                reloader = getattr(magics, "_reloader", None)
                if reloader is not None:
                    enabled, everything, objects, times, sources = value["autoreload"]
                    reloader.enabled, reloader.check_all = enabled, everything
                    reloader.autoload_obj = objects
                    reloader.modules_mtimes.update(times)
                    _sources(reloader).update(sources)
                    # It looks at loaded modules only, before the cell could touch them.
                    self._load_modules()
                    loaded: set[str] = getattr(magics, "loaded_modules", set())
                    loaded.update(sys.modules)


class ShellObjects(Provider):
    """Magics, event callbacks, transformers and formatters made by the user."""

    name = "shell.objects"
    module = "IPython.core.getipython"
    plain = False

    def start(self) -> None:
        self._base = self._now()

    @staticmethod
    def _now() -> dict[str, Any]:
        shell = current_shell()
        if shell is None:
            return {}
        found: dict[str, Any] = {}
        for kind, table in shell.magics_manager.magics.items():
            for name, function in table.items():
                if type(function).__name__ != "Alias":
                    found[f"magic.{kind}.{name}"] = function
        for event, callbacks in shell.events.callbacks.items():
            found[f"event.{event}"] = list(callbacks)
        for part in ("input_transformers_post", "ast_transformers"):
            found[f"list.{part}"] = list(getattr(shell, part))
        manager = shell.input_transformer_manager
        for part in ("cleanup_transforms", "line_transforms", "token_transformers"):
            found[f"transforms.{part}"] = list(getattr(manager, part))
        for mime, formatter in shell.display_formatter.formatters.items():
            for part in ("singleton_printers", "type_printers", "deferred_printers"):
                found[f"format.{mime}.{part}"] = dict(getattr(formatter, part))
        found["errors"] = (
            (tuple(shell.custom_exceptions), shell.CustomTB) if shell.custom_exceptions else None
        )
        return found

    def capture(self) -> Any:
        now = self._now()
        found = {}
        for name, value in now.items():
            base = self._base.get(name)
            if name.startswith("format."):
                added = {k: v for k, v in value.items() if base is None or base.get(k) is not v}
                if added:
                    found[name] = added
            elif not _same(value, base):
                found[name] = value
        return found or None

    def restore(self, value: Any) -> None:
        shell = current_shell()
        if shell is None:
            return
        for name, content in value.items():
            kind, _, rest = name.partition(".")
            if kind == "magic":
                table, _, magic = rest.partition(".")
                shell.magics_manager.magics[table][magic] = content
            elif kind == "event":
                shell.events.callbacks[rest][:] = content
            elif kind == "list":
                getattr(shell, rest)[:] = content
            elif kind == "transforms":
                getattr(shell.input_transformer_manager, rest)[:] = content
            elif kind == "format":
                mime, _, part = rest.rpartition(".")
                getattr(shell.display_formatter.formatters[mime], part).update(content)
            elif kind == "errors" and content:
                shell.custom_exceptions, shell.CustomTB = content


def _same(one: Any, other: Any) -> bool:
    """Whether two entries are the same objects; bound methods are made anew each time."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if one is other:
        return True
    if getattr(one, "__func__", one) is getattr(other, "__func__", other):
        return getattr(one, "__self__", None) is getattr(other, "__self__", None) and hasattr(
            one, "__func__"
        )
    return False
