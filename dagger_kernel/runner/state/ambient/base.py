"""Providers of ambient state, and when they act."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from json import dumps  # the user may patch the module
from typing import TYPE_CHECKING, Any

from .hooks import on_import

if TYPE_CHECKING:
    from collections.abc import Callable


class Provider:
    """One kind of ambient state.

    Attributes
    ----------
    name : str
        Its key in the manifest.
    module : str
        The library it belongs to; it acts only once that is imported.
    """

    name = ""
    module = "sys"
    plain = True
    """Whether the value is JSON and lives in the manifest; otherwise it is an ``a:`` node."""

    def start(self) -> None:
        """Take the baseline, before anything is restored; may happen while waiting idly."""

    def seed(self, seed: bytes) -> None:
        """Make what is random depend on the step alone; the last call counts."""

    def capture(self) -> Any:
        """Give the value to keep, or None while it is the baseline; changes nothing."""
        raise NotImplementedError

    def restore(self, value: Any) -> None:
        """Put a kept value in force."""
        raise NotImplementedError

    def expect(self) -> None:
        """Look at what the cell is about to change; everything is restored by now."""


class Ambient:
    """All providers of one session.

    Parameters
    ----------
    providers : list of Provider
        In the order in which they are restored.
    fetch : callable
        Loads the value of an ``a:`` node; None when it is not saved.
    """

    def __init__(self, providers: list[Provider], fetch: Callable[[str], Any]) -> None:
        self._providers = providers
        self._fetch = fetch
        self._saved: dict[str, Any] = {}
        self._started: set[str] = set()
        self._active: set[str] = set()
        self.failures: list[tuple[str, str]] = []

    def start(self) -> None:
        """Take baselines of what is loaded; cheap here, as the room is only waiting."""
        for provider in self._providers:
            if provider.module in sys.modules:
                self._start(provider)

    def rehearse(self) -> None:
        """Touch what `begin` and `capture` touch of the libraries that are loaded; restores nothing."""
        for provider in self._providers:
            if provider.module in sys.modules and provider.name not in self._active:
                self._start(provider)
                with contextlib.suppress(Exception):
                    provider.seed(bytes(16))
                    provider.capture()

    @property
    def environment(self) -> dict[str, str] | None:
        """The environment before any change of the user's; None before :meth:`begin`."""
        found = [getattr(p, "_base", None) for p in self._providers if p.name == "environ"]
        return found[0] if found else None

    def _start(self, provider: Provider) -> None:
        if provider.name in self._started:
            return
        self._started.add(provider.name)
        try:
            provider.start()
        except Exception as error:
            self.failures.append((provider.name, f"{type(error).__name__}: {error}"))

    def begin(self, saved: dict[str, Any], seed: bytes) -> None:
        """Restore everything whose library is loaded, and the rest when it is."""
        self._saved = saved
        for provider in self._providers:
            if provider.module in sys.modules:
                self._activate(provider, seed)
            else:
                on_import(provider.module, partial(self._activate, provider, seed))

    def _activate(self, provider: Provider, seed: bytes) -> None:
        if provider.name in self._active:
            return
        self._start(provider)
        self._active.add(provider.name)
        try:
            provider.seed(seed)
            if provider.plain:
                value = self._saved.get(provider.name)
            else:
                value = self._fetch(f"a:{provider.name}")
            if value is not None:
                provider.restore(value)
        except Exception as error:
            self.failures.append((provider.name, f"{type(error).__name__}: {error}"))

    def expect(self) -> None:
        """Let the providers look at what the cell is about to change."""
        for provider in self._providers:
            if provider.name in self._active:
                try:
                    provider.expect()
                except Exception as error:
                    self.failures.append((provider.name, f"{type(error).__name__}: {error}"))

    def capture(self, loaded: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the plain values for the manifest, and the values of ``a:`` nodes."""
        plain: dict[str, Any] = {}
        nodes: dict[str, Any] = {}
        for provider in self._providers:
            key = f"a:{provider.name}"
            if provider.name in self._active:
                try:
                    value = provider.capture()
                    if provider.plain:
                        dumps(value)
                except Exception as error:
                    self.failures.append((provider.name, f"{type(error).__name__}: {error}"))
                    value = None
            else:
                value = self._saved.get(provider.name) if provider.plain else loaded.get(key)
            if value is not None:
                if provider.plain:
                    plain[provider.name] = value
                else:
                    nodes[key] = value
        return plain, nodes
