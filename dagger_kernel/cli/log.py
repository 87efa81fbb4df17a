"""``dagger-kernel log``: the sandboxes, a sandbox's steps, all of one step."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dagger_kernel.log import LogStore, SandboxRow
from dagger_kernel.steps import Result, Step

from . import data, output


def run(sandbox: str | None, step: str | None, *, limit: int, as_json: bool) -> None:
    """Print what was asked for."""
    with data.opened_log() as store:
        if sandbox is None:
            _print_sandboxes(store, limit, as_json=as_json)
            return
        found = data.find_sandbox(store, sandbox)
        if step is None:
            _print_steps(store, found, as_json=as_json)
        else:
            _print_step(*data.find_step(store, found.id, step), as_json=as_json)


def _print_sandboxes(store: LogStore, limit: int, *, as_json: bool) -> None:
    rows = store.sandboxes(limit=limit)
    if as_json:
        output.print_json({"sandboxes": [asdict(row) for row in rows]})
        return
    if not rows:
        print("The log is empty: no cell has run yet.")
        return
    output.print_table(
        ("sandbox", "owner", "notebook", "steps>", "last used", "state"),
        (
            (
                row.id,
                row.owner,
                row.notebook,
                row.steps,
                output.human_time(row.last_activity),
                row.state,
            )
            for row in rows
        ),
    )


def _print_steps(store: LogStore, sandbox: SandboxRow, *, as_json: bool) -> None:
    rows = list(data.history(store, sandbox.id, outputs=as_json))
    if as_json:
        steps = [step.to_json() | {"result": _result_json(result)} for step, result in rows]
        output.print_json({"sandbox": asdict(sandbox), "steps": steps})
        return
    numbers = {step.id: step.seq for step, _result in rows}
    output.print_table(
        ("step>", "after>", "when", "kind", "status", "time>", "what"),
        (
            (
                step.seq,
                numbers.get(step.parent_id or "", "base" if step.parent_id is None else "fork"),
                output.human_time(step.created),
                step.kind.value,
                _status(step, result),
                output.human_seconds(result.usage.get("wall_seconds")) if result else "",
                _what(step, numbers),
            )
            for step, result in rows
        ),
    )


def _print_step(step: Step, result: Result | None, *, as_json: bool) -> None:
    if as_json:
        output.print_json(step.to_json() | {"result": _result_json(result)})
        return
    console = output.console()
    console.print(f"[bold]Step {step.seq}[/] ({step.kind.value}, {step.id})", highlight=False)
    facts = {
        "sandbox": step.sandbox_id,
        "created": output.human_time(step.created),
        "language": step.language.value if step.kind == "cell" else "",
        "engine": step.engine,
        "status": _status(step, result),
        "usage": ", ".join(_usage(result.usage)) if result else "",
        "key": step.key,
    }
    for name, value in facts.items():
        if value:
            print(f"  {name:<9} {output.one_line(value)}")
    _section("source", step.source)
    for item in step.payload.get("files", []):
        print(f"  {output.one_line(item['path'])}  {output.human_size(item['size'])}")
    if result is None:
        return
    _section("outputs", "\n".join(_texts(result.outputs)))
    if result.files:
        print("\nfiles")
        output.print_table(
            ("  file", "kind", "size>", "type", "kept"),
            (
                (
                    f"  {change.path}",
                    change.kind,
                    "" if change.kind == "deleted" else output.human_size(change.size),
                    "" if change.kind == "deleted" else change.mime,
                    "yes" if change.blob else change.skipped or "",
                )
                for change in result.files
            ),
        )
    if result.state_report:
        import json

        _section("state", json.dumps(result.state_report, indent=2))


def _section(title: str, text: str) -> None:
    if text.strip():
        print(f"\n{title}")
        for line in output.clean(text.rstrip()).splitlines():
            print(f"  {line}")


def _status(step: Step, result: Result | None) -> str:
    if result is None:
        # A step is written before it runs: without a result it runs now, or its kernel died.
        return "no result" if step.kind == "cell" else ""
    return f"{result.status.value} ({result.reason})" if result.reason else result.status.value


def _what(step: Step, numbers: dict[str, int]) -> str:
    if step.kind == "rewind":
        target = step.payload.get("to")
        return f"back to step {numbers.get(target, target)}" if target else "back to the base"
    if step.kind == "upload":
        return output.first_line(", ".join(item["path"] for item in step.payload.get("files", [])))
    if step.kind == "mount":
        return str(step.payload.get("name", ""))
    return output.first_line(step.source)


def _texts(outputs: list[dict[str, Any]]) -> list[str]:
    """Return each output as a person can read it on a terminal."""
    import re

    texts = []
    for item in outputs:
        if item["output_type"] == "stream":
            text = _joined(item["text"])
        elif item["output_type"] == "error":
            text = "\n".join(item["traceback"]) or f"{item['ename']}: {item['evalue']}"
        else:
            bundle = item["data"]
            others = ", ".join(mime for mime in bundle if mime != "text/plain")
            text = _joined(bundle.get("text/plain", "")) + (f"\n[{others}]" if others else "")
        texts.append(re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip())
    return texts


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _usage(usage: dict[str, Any]) -> list[str]:
    shown = []
    for name, value in usage.items():
        if name.endswith("_seconds") and isinstance(value, (int, float)):
            shown.append(f"{name.removesuffix('_seconds')} {output.human_seconds(value)}")
        elif name.endswith("_bytes") and isinstance(value, int):
            shown.append(f"{name.removesuffix('_bytes')} {output.human_size(value)}")
    return shown


def _result_json(result: Result | None) -> dict[str, Any] | None:
    return asdict(result) if result else None
