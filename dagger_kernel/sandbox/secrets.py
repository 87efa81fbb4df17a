"""Secrets of a session: in memory only, given to cells as environment, never written down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..engines.base import ChainStep
from ..errors import SecretError
from ..settings import administrators_secret
from .masking import LEAST, Mask

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_BYTES = 64 << 10


class Secrets:
    """Names and values that the session's cells get as environment variables.

    They end with the session. The log has the names; `mask` keeps the values out of everything a cell says.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._told: set[str] = set()  # what any cell was given: variables and files may hold it
        self._mask: Mask | None = None

    @property
    def names(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._values)

    @property
    def mask(self) -> Mask:
        """Finds every value that a cell of this session has been given."""
        if self._mask is None:
            self._mask = Mask(self._told)
        return self._mask

    def give(self, name: str, value: str | None = None) -> None:
        """Give a secret to the cells that follow.

        Parameters
        ----------
        value
            None: the one that the administrator provides under this name.

        Raises
        ------
        SecretError
            The name is none of an environment variable, the value cannot be one or is too short to be masked, or
            there is none.
        """
        if not NAME.fullmatch(name):
            raise SecretError(name, "it is not the name of an environment variable")
        if value is None:
            value = administrators_secret(name)
        if value is None:
            raise SecretError(name, "the administrator provides none of this name")
        if len(value) < LEAST:
            raise SecretError(
                name, f"with fewer than {LEAST} characters it cannot be masked in output"
            )
        if "\0" in value or len(value.encode("utf-8", "surrogateescape")) > MOST_BYTES:
            raise SecretError(name, f"it holds NUL or more than {MOST_BYTES} bytes")
        self._values[name] = value
        self._tell([value])

    def forget(self, name: str) -> bool:
        """Take a secret away from the cells that follow; return whether there was one. It stays masked."""
        return self._values.pop(name, None) is not None

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return what a cell gets: the secrets, and what it brings itself (which is masked from now on)."""
        self._tell(own.values())
        return {**self._values, **own}

    def lend(self, step: ChainStep) -> ChainStep:
        """Return a step to be repeated with the secrets it had, as far as they are here."""
        wanted = step.request.get("secrets", ())
        env = {name: self._values[name] for name in wanted if name in self._values}
        return replace(step, request={**step.request, "env": env}) if wanted else step

    def _tell(self, values: Iterable[str]) -> None:
        if not self._told.issuperset(values):
            self._told.update(values)
            self._mask = None


def absent(request: Mapping[str, Any]) -> list[str]:
    """Return the names of secrets that a repeated step has to do without."""
    return [name for name in request.get("secrets", ()) if name not in request.get("env", {})]
