"""``dagger-kernel export``: get the files that cells exported."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from dagger_kernel.errors import BlobError, SandboxPathError
from dagger_kernel.log import LogStore

from . import data, output
from .exits import ExitCode, exit_code


def run(
    sandbox: str,
    path: str | None,
    *,
    target: Path | None,
    step: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """List the exported files, write one, or write all of them."""
    with data.opened_log() as store:
        found = data.find_sandbox(store, sandbox)
        last = data.find_step(store, found.id, step)[0].seq if step else None
        files = exported(store, found.id, last)
        if everything:
            done, failures = _save_each(store, files, target or Path())
            _report(done, as_json)
            if failures:
                sys.exit(exit_code(failures[0]))
        elif path is None:
            _list(files, as_json)
        elif path not in files:
            why = "no cell of this sandbox exported it" if files else "no cell exported any file"
            raise SandboxPathError(path, why)
        elif str(target) == "-":
            with store.blobs.open(files[path]["blob"]) as source:
                shutil.copyfileobj(source, sys.stdout.buffer)
        else:
            place = target or Path(os.path.basename(path))
            place = place / os.path.basename(path) if place.is_dir() else place
            _report([_write(store, files[path], place)], as_json)


def exported(
    store: LogStore, sandbox_id: str, last: int | None = None
) -> dict[str, dict[str, Any]]:
    """Return the newest export of each path, up to a step; deleted files stay available."""
    files: dict[str, dict[str, Any]] = {}
    for step, result in data.history(store, sandbox_id):
        if last is not None and step.seq > last:
            break
        for change in result.files if result else ():
            if change.blob:
                files[change.path] = {
                    "path": change.path,
                    "step": step.seq,
                    "size": change.size,
                    "mime": change.mime,
                    "blob": change.blob,
                }
    return files


def save_all(store: LogStore, sandbox_id: str, directory: Path) -> list[Path]:
    """Write every exported file below a directory and return the paths; what cannot be is left out."""
    done, _failures = _save_each(store, exported(store, sandbox_id), directory)
    return [Path(item["written"]) for item in done if "written" in item]


def _save_each(
    store: LogStore, files: dict[str, dict[str, Any]], directory: Path
) -> tuple[list[dict[str, Any]], list[Exception]]:
    """Write every file that can be: one with an impossible name costs no other.

    Returns
    -------
    tuple
        The files, each with where it was ``written`` or why it ``failed``, and the errors.
    """
    done: list[dict[str, Any]] = []
    failures: list[Exception] = []
    # The newest first: where a file became a folder, the folder is what is there now.
    for item in sorted(files.values(), key=lambda item: -item["step"]):
        try:
            done.append(_save(store, item, directory))
        except (SandboxPathError, BlobError, OSError) as error:
            if exit_code(error) is ExitCode.FULL:
                raise
            why = error.strerror if isinstance(error, OSError) else str(error)
            done.append(item | {"failed": why})
            failures.append(error)
    return done, failures


def _save(store: LogStore, item: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Write a file at its own path below a directory, never outside it.

    The path comes from inside a sandbox, so nothing about it is trusted.
    """
    path = str(item["path"])
    try:
        path = os.fsdecode(path.encode("utf-8", "surrogateescape"))
    except UnicodeError:
        raise SandboxPathError(path, "no file can have this name") from None
    root = directory.resolve()
    target = Path(os.path.normpath(root / path.lstrip("/")))
    if not target.is_relative_to(root) or target == root or "\0" in path:
        raise SandboxPathError(path, "it leaves the target directory")
    if not target.parent.resolve().is_relative_to(root):
        raise SandboxPathError(path, "a link leads out of the target directory")
    target.parent.mkdir(parents=True, exist_ok=True)
    return _write(store, item, target)


def _write(store: LogStore, item: dict[str, Any], target: Path) -> dict[str, Any]:
    if target.is_symlink():
        target.unlink()
    with store.blobs.open(item["blob"]) as source, target.open("wb") as out:
        shutil.copyfileobj(source, out)
    return item | {"written": str(target)}


def _list(files: dict[str, dict[str, Any]], as_json: bool) -> None:
    if as_json:
        output.print_json({"files": list(files.values())})
    elif files:
        output.print_table(
            ("file", "size>", "type", "step>"),
            (
                (item["path"], output.human_size(item["size"]), item["mime"], item["step"])
                for item in files.values()
            ),
        )
    else:
        print("No cell of this sandbox exported a file.")


def _report(written: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        output.print_json({"files": written})
        return
    for item in written:
        if "failed" in item:
            why = f"{item['path']}: {item['failed']}"
            print(f"Not written: {output.one_line(why)}", file=sys.stderr)
        else:
            facts = f"{output.human_size(item['size'])}, step {item['step']}"
            print(f"{output.one_line(item['written'])} ({facts})")
