"""``input()`` and ``getpass()`` of a cell.

A live answer comes from the person over the link and is recorded; on a replay it comes from the record.
Passwords are never recorded.
"""

from __future__ import annotations

import builtins
import sys
from typing import Any

from .channel import Channel
from .streams import flush

REFUSED = "{} was called, but this frontend does not support input requests."
"""ipykernel's words; clients know them."""


class Stdin:
    """Where the answers come from."""

    def __init__(self, channel: Channel | None = None) -> None:
        self.channel = channel
        self.allowed = False
        self.recorded: list[str | None] | None = None
        self.answers: list[str | None] = []
        self._next = 0

    def install(self) -> None:
        """Replace ``input`` and ``getpass.getpass``."""
        import getpass

        # A plain function: `input` is looked at by debuggers, which expect one.
        def input(prompt: object = "", /) -> str:  # noqa: A001
            """Forward input to the person at the notebook.

            Prompts with the given text and returns what is typed, without the newline.
            """
            return self.ask(str(prompt), password=False)

        def ask_password(prompt: str = "Password: ", stream: Any = None, **_options: Any) -> str:
            """Ask for a password, without echo."""
            if stream is not None:
                import warnings

                warnings.warn(
                    "The `stream` parameter of `getpass.getpass` has no effect here",
                    UserWarning,
                    stacklevel=2,
                )
            return self.ask(str(prompt), password=True)

        input.__module__ = "builtins"
        builtins.input = input
        getpass.getpass = ask_password

    def ask(self, prompt: str, *, password: bool) -> str:
        """Return the next answer.

        Raises
        ------
        StdinNotImplementedError
            Nobody can answer.
        EOFError
            The person gave none.
        RuntimeError
            The record has no more answers, or a password was typed there.
        """
        if self.recorded is not None:
            return self._replayed(prompt, password=password)
        if not self.allowed or self.channel is None or not self.channel.own:
            from IPython.core.error import StdinNotImplementedError

            raise StdinNotImplementedError(REFUSED.format("getpass" if password else "raw_input"))
        flush()
        answer = self.channel.ask_input(prompt, password)
        self.answers.append(None if password else answer)
        return answer

    def _replayed(self, prompt: str, *, password: bool) -> str:
        recorded = self.recorded or []
        if self._next >= len(recorded):
            raise EOFError(f"this step is replayed, and no answer to {prompt!r} is recorded")
        answer = recorded[self._next]
        self._next += 1
        self.answers.append(answer)
        if answer is None or password:
            raise RuntimeError(
                "this step is replayed, and passwords are not recorded: "
                f"run the cell again to answer {prompt!r}"
            )
        sys.stdout.flush()
        return answer
