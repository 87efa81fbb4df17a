"""Handles of the states that this session has made or found: only handles, the engine holds the layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base import ChainStep

if TYPE_CHECKING:
    import dagger


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state of the engine.

    Attributes
    ----------
    key, parent_key
        See `dagger_kernel.steps`.
    position
        Steps since the base.
    kind
        How it was made: ``root`` or the kind of its step. The state of an interrupted cell as it ran is not
        the state that its stored layer gives, as far as the engine's cache is concerned.
    container
        Evaluated, or cached by the engine.
    """

    key: str
    parent_key: str
    position: int
    kind: str
    container: dagger.Container


class States:
    """The states of one session."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}

    def get(self, key: str) -> State | None:
        """Return the state of a key."""
        return self._states.get(key)

    def put(self, state: State) -> None:
        """Keep a state."""
        self._states[state.key] = state

    def deepest(self, chain: Sequence[ChainStep]) -> State | None:
        """Return the known state that lies furthest along a chain."""
        for step in reversed(chain):
            state = self._states.get(step.key)
            if state is not None and state.kind == step.kind:
                return state
        return None

    def drop(self, keys: Sequence[str] | None) -> int:
        """Forget states (None: all but roots); return how many."""
        doomed = [
            key
            for key, state in self._states.items()
            if (keys is None and state.kind != "root") or (keys is not None and key in keys)
        ]
        for key in doomed:
            del self._states[key]
        return len(doomed)

    def clear(self) -> None:
        """Forget everything: the session is another."""
        self._states.clear()
