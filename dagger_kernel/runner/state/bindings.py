"""The globals of ``__main__``: what the shell put there, and what the user's code bound."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .manifest import Manifest


class Bindings:
    """The live side of a session.

    Parameters
    ----------
    namespace : dict
        The exact dictionary of the module registered as ``__main__``.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self._base = dict(namespace)
        self._held: dict[str, Any] | None = None

    def release(self, names: Iterable[str]) -> None:
        """Unbind names, so that looking them up asks for what is saved."""
        for name in names:
            self.namespace.pop(name, None)

    def bind(self, name: str, value: Any) -> None:
        """Bind a loaded value, unless the cell bound the name first."""
        (self.namespace if self._held is None else self._held).setdefault(name, value)

    def own(self) -> dict[str, Any]:
        """Give what the user's code bound; the shell's own names only where it bound them anew."""
        return {
            name: value
            for name, value in self.namespace.items()
            if isinstance(name, str)
            and name != "__builtins__"
            and not (name in self._base and self._base[name] is value)
        }

    def unset(self, before: Manifest, after: Manifest) -> list[str]:
        """Give the shell's names which the user's code has deleted, in this cell or before."""
        known = self._base.keys() | set(before.unset)
        return sorted(known - self.namespace.keys() - after.names.keys())

    @property
    def are_aside(self) -> bool:
        """Whether :meth:`aside` is at work."""
        return self._held is not None

    @contextlib.contextmanager
    def aside(self) -> Iterator[dict[str, Any]]:
        """Put the cell's variables aside; what is loaded meanwhile for them joins them after."""
        namespace, saved = self.namespace, dict(self.namespace)
        held = self._held = {}
        namespace.clear()
        namespace.update(self._base, __builtins__=saved["__builtins__"])
        try:
            yield namespace
        finally:
            namespace.clear()
            namespace.update(saved)
            self._held = None
            for name, value in held.items():
                namespace.setdefault(name, value)
