"""What IPython displays becomes frames."""

from __future__ import annotations

import builtins
import sys
import threading
from typing import Any, ClassVar

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher

from .channel import Channel
from .mime import clean, within
from .streams import flush


class Outlet:
    """Where frames go, and the limits they are cut to; set when a step starts."""

    channel: ClassVar[Channel | None] = None
    text_bytes: ClassVar[float] = 256 << 10
    file_bytes: ClassVar[float] = 16 << 20
    errors: ClassVar[int] = 0

    @classmethod
    def send(cls, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame in its place among the text."""
        flush()
        if head["type"] == "error":
            cls.errors += 1
        if cls.channel is not None:
            cls.channel.send_in_order(head, body)

    @classmethod
    def bundle(cls, data: Any, metadata: Any) -> dict[str, Any]:
        """Return data and metadata as the wire can carry them."""
        return {
            "data": within(clean(data), cls.text_bytes, cls.file_bytes),
            "metadata": clean(metadata),
        }


class Publisher(DisplayPublisher):
    """``display()``, ``update_display()`` and ``clear_output()``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._local = threading.local()

    @property
    def _hooks(self) -> list[Any]:
        """Hooks of this thread; ipywidgets' Output widget registers them."""
        if not hasattr(self._local, "hooks"):
            self._local.hooks = []
        hooks: list[Any] = self._local.hooks
        return hooks

    def register_hook(self, hook: Any) -> None:
        """Let a callable see (and keep) messages before they are sent."""
        self._hooks.append(hook)

    def unregister_hook(self, hook: Any) -> bool:
        """Remove a hook; return whether it was there."""
        try:
            self._hooks.remove(hook)
        except ValueError:
            return False
        return True

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        source: Any = None,
        *,
        transient: Any = None,
        update: bool = False,
        **_more: Any,
    ) -> None:
        """Send display data."""
        self._validate_data(data, metadata)
        kind = "update_display_data" if update else "display_data"
        content = {**Outlet.bundle(data, metadata or {}), "transient": clean(transient or {})}
        message: Any = {"header": {"msg_type": kind}, "msg_type": kind, "content": content}
        for hook in self._hooks:
            message = hook(message)
            if message is None:
                return
        Outlet.send({"type": "display", **message["content"], "update": bool(update)})

    def clear_output(self, wait: bool = False) -> None:
        """Clear the cell's output."""
        message: Any = {
            "header": {"msg_type": "clear_output"},
            "msg_type": "clear_output",
            "content": {"wait": wait},
        }
        for hook in self._hooks:
            message = hook(message)
            if message is None:
                return
        Outlet.send({"type": "clear", "wait": bool(wait)})


class ResultHook(DisplayHook):
    """The value of the cell's last expression."""

    frame: dict[str, Any] | None = None

    def start_displayhook(self) -> None:
        """Begin a result."""
        self.frame = {"type": "result", "execution_count": self.prompt_count}

    def write_output_prompt(self) -> None:
        """Write no prompt: the client draws it."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        """Take the representations."""
        if self.frame is not None:
            self.frame |= Outlet.bundle(format_dict, md_dict or {})

    def update_user_ns(self, result: Any) -> None:
        """Bind ``_`` and ``_n``.

        Unlike IPython's own, it does not mistake a saved variable called ``_`` for one of ours, and binds
        ``__`` and ``___`` only where they are known: see `history`.
        """
        names = self.shell.user_ns
        results = self.shell.history_manager.output_hist  # user code may have dropped its names
        if not self.cache_size or result is results:
            return
        older = [name for name in ("_", "__", "___") if name in names]
        ours = all(names[name] is getattr(self, name) for name in older)
        ours = ours and not {"_", "__", "___"} & (set(self.shell.saved_names()) - set(older))
        previous = getattr(self, "_", ""), getattr(self, "__", "")
        self._, self.__, self.___ = result, *previous
        if ours and not hasattr(builtins, "_"):
            names["_"] = result
            for name in ("__", "___"):
                value = getattr(self, name)
                if name in older or not (isinstance(value, str) and not value):
                    names[name] = value
        if self.do_full_cache:
            names[f"_{self.prompt_count}"] = result
            dict.__setitem__(results, self.prompt_count, result)

    def finish_displayhook(self) -> None:
        """Send the result."""
        frame, self.frame = self.frame, None
        if frame is not None and frame.get("data"):
            Outlet.send(frame)
        else:
            sys.stdout.flush()
        self._is_active = False
