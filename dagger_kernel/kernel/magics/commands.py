"""What ``%sandbox`` can say and do."""

from __future__ import annotations

from ...sandbox import SandboxSession
from ...settings import maximum_limits
from ..files import EXPORTED_KINDS, export_command
from ..text import human_size, one_line
from .branches import fork, rewind
from .context import Command, Context
from .options import OPTIONS
from .parse import INSIDE, LineCalls, UsageError
from .secrets import secret
from .skills import skills
from .uploads import upload

NO_MAXIMUM = 1 << 62
LOG_STEPS = 20


async def run(calls: LineCalls, context: Context) -> None:
    """Run the commands of a cell.

    Raises
    ------
    UsageError
        There is no such command, or it takes other words.
    DaggerKernelError
        The log cannot be used.
    """
    for words in calls.calls:
        name, *rest = words or ["status"]
        command = COMMANDS.get(name.lstrip("-"))
        if command is None and name == INSIDE:
            raise UsageError("A bash cell has no variables: %sandbox recompute is for Python.")
        if command is None:
            raise UsageError(f"%sandbox has no command {name!r}; it has {', '.join(COMMANDS)}.")
        await command(context, rest)


async def _status(context: Context, _words: list[str]) -> None:
    session = await context.holder.get()
    status = session.status()
    rows = [
        ("sandbox", status["id"]),
        ("notebook", context.holder.notebook or "(none: started outside a notebook server)"),
        ("engine", status["engine"]),
        ("base", status["base"] or "(not prepared yet)"),
        ("steps", status["steps"]),
        ("network", status["network"]),
        ("log", status["data_dir"]),
    ]
    context.print("\n".join(f"{name:<9} {value}" for name, value in rows))
    context.print("%sandbox help lists the commands.")


async def _id(context: Context, _words: list[str]) -> None:
    context.print((await context.holder.get()).id)


async def _engine(context: Context, _words: list[str]) -> None:
    context.print(str((await context.holder.get()).status()["engine"]))


async def _limits(context: Context, _words: list[str]) -> None:
    session = await context.holder.get()
    limits, maximum = session.settings.limits, maximum_limits()
    lines = ["limit of a cell       now          option of %%sandbox"]
    for name, option in OPTIONS.items():
        value, highest = getattr(limits, option.field), getattr(maximum, option.field)
        top = "" if highest >= NO_MAXIMUM else f" (at most {_amount(option.field, highest)})"
        lines.append(f"{option.field:<21} {_amount(option.field, value):<12} {name}{top}")
    context.print("\n".join(lines))


def _amount(field: str, value: float) -> str:
    if field.endswith("_bytes"):
        return human_size(int(value))
    return f"{value:g} s" if field.endswith("_seconds") else str(value)


async def _log(context: Context, words: list[str]) -> None:
    count = int(words[0]) if words and words[0].isdigit() else LOG_STEPS
    steps = await (await context.holder.get()).steps()
    if not steps:
        context.print("No step yet.")
        return
    if len(steps) > count:
        context.print(
            f"... {len(steps) - count} earlier steps; %sandbox log {len(steps)} lists all"
        )
    for step, result in steps[-count:] if count else []:
        status = str(result.status) if result else "no result"
        first = next(iter(step.source.strip().splitlines()), "")
        context.print(f"{step.seq:>4}  {step.kind:<6} {status:<11} {one_line(first)[:80]}")


async def _files(context: Context, _words: list[str]) -> None:
    session: SandboxSession = await context.holder.get()
    newest = {
        change.path: (step.seq, change)
        for step, result in await session.steps()
        for change in (result.files if result else ())
        if change.blob and change.kind in EXPORTED_KINDS
    }
    if not newest:
        context.print("No cell exported a file yet.")
        return
    for path, (seq, change) in sorted(newest.items()):
        context.print(f"{human_size(change.size):>9}  step {seq:<4} {one_line(path)}")
    context.print("Get them: " + export_command(session.id))


async def _reset(context: Context, _words: list[str]) -> None:
    old = (await context.holder.get()).id
    new = await context.holder.reset()
    context.print(f"This is a new, empty sandbox: {new.id}")
    context.print(f"The old one stays in the log: {old}")


async def _help(context: Context, _words: list[str]) -> None:
    options = "\n".join(f"    {name:<13} {option.help}" for name, option in OPTIONS.items())
    context.print(HELP.format(options=options).strip())


HELP = """
%sandbox            what this notebook runs on
%sandbox id         the sandbox's id alone
%sandbox engine     the engine's name alone
%sandbox limits     the limits of a cell, and the administrator's maximum
%sandbox log [N]    the last N steps
%sandbox files      the files that cells exported
%sandbox upload P   put files or folders beside the notebook into attachments/
%sandbox skills     the administrator's skills below /skills, and their versions
%sandbox rewind N   continue from step N; the steps after it stay in the log
%sandbox fork [N]   go on in a new sandbox that continues from here, or from step N
%sandbox secret NAME  give the cells that follow a secret, asked for here (--forget takes it back)
%sandbox recompute NAME  run the cells that made a lost variable once more
%sandbox reset      leave this sandbox, begin a new, empty one
%sandbox help       this text

%%sandbox OPTIONS   on the first line of a cell: limits for this cell
{options}
"""

COMMANDS: dict[str, Command] = {
    "status": _status,
    "id": _id,
    "engine": _engine,
    "limits": _limits,
    "log": _log,
    "files": _files,
    "upload": upload,
    "skills": skills,
    "rewind": rewind,
    "fork": fork,
    "secret": secret,
    "reset": _reset,
    "help": _help,
}
