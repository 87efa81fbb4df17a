"""``In``, ``Out``, ``_`` and their kin over steps.

Inputs are text: they go to small files of their own and are read only by code that looks at them.
Results are the variables ``_1``, ``_2``, ...: the state keeps them like all others, and `Out` looks them
up there. So neither grows the work of a step that uses neither.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .recall import Recall

if TYPE_CHECKING:
    from .state.withheld import Withheld

FOLDER = "history"
BLOCK = 50
"""Inputs per file: a file of an earlier step is copied when it is appended to, so it stays small."""

LOOKS = re.compile(
    r"\b(?:In|_ih|_i{1,3}|_i\d+|get_ipython)\b|%\s*(?:hist|rerun|rep|recall|macro|save|edit|pastebin|load|logst|note)"
)
RESULTS = re.compile(r"(?<![\w.])_{1,3}(?!\w)")
INPUT_NAME = re.compile(r"_i{1,3}|_i\d+")


class History:
    """The histories of a shell, filled from the state directory."""

    def __init__(self, shell: Any, state_dir: str) -> None:
        self.shell = shell
        self.folder = os.path.join(state_dir, FOLDER)
        self.results: list[int] = []
        self._loaded = False
        self._count = 0

    def begin(self, source: str, count: int) -> None:
        """Fill in what the source looks at; make the next input ``In[count]``."""
        self._count = count
        self._read_results()
        manager = self.shell.history_manager
        if LOOKS.search(source):
            self._load_inputs(count)
            Recall(list(self.read_inputs()), (count, source)).install(manager)
        for lines in (manager.input_hist_parsed, manager.input_hist_raw):
            lines.extend([""] * (count - len(lines)))
        if RESULTS.search(source):
            self._load_results()

    def read_inputs(self) -> Iterator[tuple[int, str, str, bool]]:
        """Yield number, raw and plain source of earlier cells, and whether they are in ``In``."""
        try:
            blocks = sorted(os.listdir(self.folder))
        except OSError:
            return
        for block in blocks:
            if not block.endswith(".jsonl"):
                continue
            with open(os.path.join(self.folder, block), encoding="ascii") as stream:
                for line in stream:
                    number, raw, parsed, stored = json.loads(line)
                    yield number, raw, parsed, stored

    def _load_inputs(self, count: int) -> None:
        manager = self.shell.history_manager
        entries = {
            number: (raw, parsed) for number, raw, parsed, stored in self.read_inputs() if stored
        }
        raws = [entries.get(number, ("", ""))[0] for number in range(count)]
        manager.input_hist_raw[:] = raws
        manager.input_hist_parsed[:] = [
            entries.get(number, ("", ""))[1].rstrip("\n") for number in range(count)
        ]
        last = [entries[number][0] for number in sorted(entries)[-3:]]
        manager._i00, manager._i, manager._ii = [*reversed(last), "", "", ""][:3]
        names = self.shell.user_ns
        for number, (raw, _parsed) in entries.items():
            names[f"_i{number}"] = raw
        names["_i"], names["_ii"], names["_iii"] = [*reversed(last), "", "", ""][:3]

    def _load_results(self) -> None:
        """Bind ``_``, ``__`` and ``___``, unless the user's own variables are called so."""
        names, hook = self.shell.user_ns, self.shell.displayhook
        numbers = [*reversed(self.results), 0, 0, 0]
        for name, number in zip(("_", "__", "___"), numbers, strict=False):
            try:
                value = eval(f"_{number}", names) if number else ""
            except Exception:
                value = ""
            setattr(hook, name, value)
            try:
                eval(name, names)
            except NameError:
                names[name] = value

    def _read_results(self) -> None:
        try:
            with open(os.path.join(self.folder, "results.json"), encoding="ascii") as stream:
                self.results = [int(number) for number in json.loads(stream.read())][-3:]
        except (OSError, ValueError, TypeError):
            self.results = []

    def keep(self, raw: str, parsed: str, *, stored: bool) -> None:
        """Write what this step adds, and leave to the state only what is the state's."""
        manager, names, hook = (
            self.shell.history_manager,
            self.shell.user_ns,
            self.shell.displayhook,
        )
        for name in [name for name in names if INPUT_NAME.fullmatch(name)]:
            if isinstance(names[name], str):
                del names[name]
        for name in ("_", "__", "___"):
            if name in names and names[name] is getattr(hook, name):
                del names[name]
        self._append(raw, parsed, stored=stored)
        if dict.__contains__(manager.output_hist, self._count):
            self.results = [*self.results, self._count][-3:]
            self._write("results.json", json.dumps(self.results))

    def keep_error(self, error: dict[str, Any], withheld: Withheld) -> None:
        """Write the error that this step ended with; a later session may show it, without the secrets of this one."""
        self._write("error.json", json.dumps(withheld.masked(error)))

    def withhold_stored(self, withheld: Withheld) -> Iterator[tuple[str, str]]:
        """Delete what this step's ``%store`` and its kin wrote of secrets; yield each file's name and the secret's."""
        if not withheld:
            return
        database = self.shell._db  # None: this step did not use it
        for name in list(database or ()):
            secret = withheld.found_in((database.root / name).read_bytes())
            if secret:
                del database[name]
                yield name, secret

    def last_error(self) -> dict[str, Any] | None:
        """Return the error of the last failed step."""
        try:
            with open(os.path.join(self.folder, "error.json"), encoding="ascii") as stream:
                return dict(json.loads(stream.read()))
        except (OSError, ValueError, TypeError):
            return None

    def _append(self, raw: str, parsed: str, *, stored: bool) -> None:
        path = os.path.join(self.folder, f"{self._count // BLOCK:06d}.jsonl")
        line = json.dumps([self._count, raw.rstrip("\n"), parsed, stored]) + "\n"
        flags = os.O_APPEND | os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
        try:
            file = os.open(path, flags, 0o644)
        except FileNotFoundError:
            os.makedirs(self.folder, exist_ok=True)
            file = os.open(path, flags, 0o644)
        with open(file, "wb", buffering=0) as stream:
            stream.write(line.encode("ascii"))

    def _write(self, name: str, text: str) -> None:
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="ascii") as stream:
            stream.write(text)
        os.replace(path + ".new", path)


class Results(dict[int, Any]):
    """``Out``: results of earlier steps are looked up among the saved variables."""

    def __init__(self, shell: Any) -> None:
        super().__init__()
        self._shell = shell

    @classmethod
    def install(cls, shell: Any) -> None:
        """Put it in the place of a shell's ``Out``."""
        results = cls(shell)
        shell.history_manager.output_hist = results
        for name in ("Out", "_oh"):
            shell.user_ns[name] = shell.user_ns_hidden[name] = results

    def _saved(self) -> set[int]:
        names = (*self._shell.saved_names(), *self._shell.user_ns)
        return {int(name[1:]) for name in names if re.fullmatch(r"_\d+", name)}

    def __missing__(self, number: Any) -> Any:
        if number in self._saved():
            value = eval(f"_{number}", self._shell.user_ns)
            self[number] = value
            return value
        raise KeyError(number)

    def _loaded(self) -> set[int]:
        return set(super().keys())

    def _fill(self) -> None:
        for number in sorted(self._saved() - self._loaded()):
            with contextlib.suppress(Exception):  # one lost result costs no other
                self[number] = eval(f"_{number}", self._shell.user_ns)

    def __contains__(self, number: object) -> bool:
        return super().__contains__(number) or number in self._saved()

    def __iter__(self) -> Iterator[int]:
        self._fill()
        return iter(sorted(self._loaded()))

    def __len__(self) -> int:
        return len(self._saved() | self._loaded())

    def __repr__(self) -> str:
        self._fill()
        return repr({number: dict.__getitem__(self, number) for number in sorted(self._loaded())})

    def get(self, number: int, default: Any = None) -> Any:
        """Return a result, the default if there is none."""
        try:
            return self[number]
        except KeyError:
            return default

    def keys(self) -> Any:
        """Return the numbers of all results."""
        self._fill()
        return super().keys()

    def values(self) -> Any:
        """Return all results."""
        self._fill()
        return super().values()

    def items(self) -> Any:
        """Return numbers and results."""
        self._fill()
        return super().items()
