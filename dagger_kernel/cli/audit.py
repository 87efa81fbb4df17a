"""``dagger-kernel audit``: who ran what when, for people, scripts and spreadsheets."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from dagger_kernel.errors import SettingError
from dagger_kernel.log.audit import Record

from . import data, output
from .format import Format

COLUMNS = (
    "time", "user", "sandbox", "notebook", "event", "step", "id", "language", "source", "source_digest", "status",
    "reason", "finished", "cpu_seconds", "engine", "base", "session", "forked_from", "to", "by", "steps", "name",
    "digest", "secrets", "files", "hosts", "limits",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet take a cell for a formula."""


def run(
    *,
    since: str | None,
    until: str | None,
    user: str | None,
    sandbox: str | None,
    form: Format,
    target: Path | None,
    as_json: bool,
) -> None:
    """Write the records."""
    first, last = _moment("since", since), _moment("until", until)
    with (
        data.opened_log() as store,
        _opened(target) as stream,
        _writer(form, stream, as_json) as take,
    ):
        found = data.find_sandbox(store, sandbox).id if sandbox else None
        store.audit(take, since=first, until=last, owner=user, sandbox_id=found)


@contextlib.contextmanager
def _opened(target: Path | None) -> Iterator[IO[str]]:
    if target is None or str(target) == "-":
        yield sys.stdout
        return
    with target.open("w", encoding="utf-8", newline="") as stream:
        target.chmod(0o600)
        yield stream


@contextlib.contextmanager
def _writer(form: Format, stream: IO[str], as_json: bool) -> Iterator[Callable[[Record], None]]:
    """Yield what takes a record; it writes as it goes, so that a log of any length fits."""
    if as_json:
        records: list[Record] = []
        yield records.append
        json.dump(records, stream, indent=2)
        stream.write("\n")
    elif form is Format.LINES:
        # ASCII: no text of a user's can end the line or reach the terminal.
        yield lambda record: print(json.dumps(record), file=stream)
    elif form is Format.CSV:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        yield lambda record: writer.writerow([_cell(record.get(name)) for name in COLUMNS])
    else:
        yield lambda record: print(_line(record), file=stream)


def _line(record: Record) -> str:
    what = record.get("source")
    if what is None:
        what = ", ".join(item["path"] for item in record.get("files", ()))
    if record["event"] == "purge":
        what = f"{record['steps']} steps, by {record['by']}"
    when = output.human_time(datetime.fromisoformat(record["time"]))
    place = (
        f"{record['sandbox'][:8]}/{record['step']}" if "step" in record else record["sandbox"][:8]
    )
    parts = [when, record["user"], place, record["event"], record.get("status") or ""]
    return output.one_line("  ".join([*map(str, parts), output.first_line(what or "")])).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    text = output.clean(text)
    return "'" + text if text.startswith(FORMULA) else text


def _moment(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise SettingError(
            f"--{name}", text, "a date or a time, such as 2026-01-31T08:00"
        ) from None
