"""Source code of earlier cells, for tracebacks and ``inspect.getsource``.

A function of an earlier cell still names its cell's file; the lines are read from the history the first time
somebody asks for one.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from typing import Any

from .history import History

PREFIX = "<ipython-input-"


class Sources(dict[str, Any]):
    """`linecache.cache`, with the cells of earlier steps."""

    def __init__(self, shell: Any, history: History, entries: dict[str, Any]) -> None:
        super().__init__(entries)
        self._shell = shell
        self._history = history
        self._loaded = False

    @classmethod
    def install(cls, shell: Any, history: History) -> None:
        """Put it in the place of the cache, and let classes of cells find their source."""
        sources = cls(shell, history, linecache.cache)
        linecache.cache = sources
        inspect.getfile = _with_classes(inspect.getfile, sources)

    def _load(self, name: object) -> None:
        if self._loaded or not (isinstance(name, str) and name.startswith(PREFIX)):
            return
        self._loaded = True
        compiler = self._shell.compile
        for number, _raw, parsed, _stored in self._history.read_inputs():
            code = parsed if parsed.endswith("\n") else parsed + "\n"
            file = compiler.get_code_name(code, code, number)
            compiler._filename_map.setdefault(file, number)
            self.setdefault(file, (len(code), None, code.splitlines(keepends=True), file))

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            self._load(name)
        return super().__contains__(name)

    def __missing__(self, name: str) -> Any:
        self._load(name)
        if super().__contains__(name):
            return super().__getitem__(name)
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry, the default if there is none."""
        try:
            return self[name]
        except KeyError:
            return default

    def file_of(self, cls: type) -> str | None:
        """Return the file of a class made in a cell."""
        for value in vars(cls).values():
            code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
            if code is not None and code.co_filename.startswith(PREFIX):
                return str(code.co_filename)
        self._load(PREFIX)
        wanted = f"class {cls.__qualname__.partition('.')[0]}"
        for file, entry in reversed(list(self.items())):
            if file.startswith(PREFIX) and isinstance(entry, tuple) and len(entry) == 4:
                lines = entry[2]
                if any(line.lstrip().startswith(wanted) for line in lines):
                    return file
        return None


def _with_classes(getfile: Any, sources: Sources) -> Any:
    """Wrap `inspect.getfile`, which knows no file for classes of ``__main__``."""

    def find(object: Any) -> str:  # noqa: A002 - its name in the standard library
        try:
            return str(getfile(object))
        except (TypeError, OSError):
            module = getattr(object, "__module__", None)
            if isinstance(object, type) and module == "__main__" and module in sys.modules:
                file = sources.file_of(object)
                if file is not None:
                    return file
            raise

    find.__name__ = find.__qualname__ = "getfile"
    find.__doc__ = getfile.__doc__
    return find
