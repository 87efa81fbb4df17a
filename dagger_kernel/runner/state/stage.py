"""Where an earlier cell runs again: the session's globals, put aside, on what was saved then."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from .manifest import load_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .ambient import Ambient
    from .bindings import Bindings
    from .loader import Loader
    from .past import PastLoader
    from .pending import Pending
    from .static import Needs
    from .store import BlobStore


class Stage:
    """What cells which run again see and use of the running cell's session.

    Parameters
    ----------
    home : str
        The directory cells start in.
    store : BlobStore
        The state directory.
    bindings : Bindings
        The live side.
    pending : Pending
        The saved side.
    ambient : Ambient
        The state of libraries and interpreter.
    """

    def __init__(
        self, home: str, store: BlobStore, bindings: Bindings, pending: Pending, ambient: Ambient
    ) -> None:
        self.home = home
        self._store = store
        self._bindings = bindings
        self._pending = pending
        self._ambient = ambient

    @property
    def root(self) -> str:
        """The state directory's path."""
        return self._store.root

    @property
    def namespace(self) -> dict[str, Any]:
        """The dictionary of globals."""
        return self._bindings.namespace

    @property
    def loader(self) -> Loader:
        """The saved side: the running cell's, or the earlier one inside :meth:`seeing`."""
        return self._pending.loader

    @property
    def environment(self) -> dict[str, str] | None:
        """The environment before any change of the user's; None before the cell began."""
        return self._ambient.environment

    @property
    def repeating(self) -> bool:
        """Whether an earlier cell runs again at the moment."""
        return self._bindings.are_aside

    def aside(self) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Put the cell's variables aside; what is loaded meanwhile for them joins them after."""
        return self._bindings.aside()

    @contextlib.contextmanager
    def seeing(self, at: str) -> Iterator[PastLoader]:
        """Make absent names mean what they meant after an earlier step ("": before the first)."""
        from .past import PastLoader

        pending, live = self._pending, self._pending.loader
        _, manifest = load_manifest(self.root, at)
        past = PastLoader(manifest, self._store, self.namespace.setdefault, live)
        past.code_hook, past.expose_hook = pending.code_loaded, pending.load_all
        pending.loader = past
        self._bindings.release(manifest.unset)
        try:
            yield past
        finally:
            pending.loader = live

    def prefetch(self, needs: Needs) -> None:
        """Load what lazy lookup would miss."""
        self._pending.prefetch(needs)

    def fetch_ambient(self, key: str) -> Any:
        """Give the value of an ``a:`` node; None when there is none."""
        return self._pending.fetch_ambient(key)
