"""The commands and their options. Each command's work is in a module of its own, imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from .format import Format

app = typer.Typer(
    help="Notebooks that are logs: install the kernel, look at its log, check the machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for scripts.")]
# typer reads annotations at run time: on 3.11 they must be spelled the old way.
OptionalPath = Optional[Path]  # noqa: UP045
OptionalText = Optional[str]  # noqa: UP045
OptionalFlag = Optional[bool]  # noqa: UP045


def _version(wanted: bool) -> None:
    if wanted:
        from dagger_kernel._version import __version__

        typer.echo(f"dagger-kernel {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version_wanted: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Notebooks that are logs: install the kernel, look at its log, check the machine."""


@app.command()
def install(
    user: Annotated[
        bool, typer.Option("--user", help="For the current user (the default).")
    ] = False,
    sys_prefix: Annotated[
        bool, typer.Option("--sys-prefix", help="Into the running Python environment.")
    ] = False,
    prefix: Annotated[
        OptionalPath, typer.Option(help="Below PREFIX/share/jupyter/kernels.", metavar="PREFIX")
    ] = None,
    env: Annotated[
        list[str],
        typer.Option(help="Set a variable for the kernel; may be repeated.", metavar="NAME=VALUE"),
    ] = [],  # noqa: B006 - typer reads the default, nothing changes it
    as_json: Json = False,
) -> None:
    """Register the kernels with Jupyter (pip did it already for its own environment)."""
    from . import install as command

    command.run(user=user, sys_prefix=sys_prefix, prefix=prefix, env=env, as_json=as_json)


@app.command()
def doctor(
    measure: Annotated[
        OptionalFlag,
        typer.Option(
            "--measure/--no-measure",
            help="Run one step on each engine; default: where the base is there already.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is there, what is missing and what to do. Exit code 1: no cell can run here."""
    from . import doctor as command

    command.run(measure=measure, as_json=as_json)


@app.command()
def prepare(as_json: Json = False) -> None:
    """Build the base now, so that the first cell need not wait for it."""
    from . import prepare as command

    command.run(as_json=as_json)


@app.command()
def log(
    sandbox: Annotated[
        OptionalText,
        typer.Argument(help="Id (or its beginning), notebook path, or 'latest'."),
    ] = None,
    step: Annotated[OptionalText, typer.Argument(help="Number or id of a step.")] = None,
    limit: Annotated[int, typer.Option(help="List so many sandboxes.", min=1)] = 100,
    as_json: Json = False,
) -> None:
    """List the sandboxes; a sandbox's steps; or all of one step."""
    from . import log as command

    command.run(sandbox, step, limit=limit, as_json=as_json)


@app.command()
def export(
    sandbox: Annotated[str, typer.Argument(help="Id (or its beginning), path, or 'latest'.")],
    path: Annotated[
        OptionalText, typer.Argument(help="Exported file; without it: list them.")
    ] = None,
    output: Annotated[
        OptionalPath,
        typer.Option("--output", "-o", help="Where to write it; '-' is standard output."),
    ] = None,
    step: Annotated[
        OptionalText, typer.Option(help="As that step left it; default: the last.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Write every exported file into the directory OUTPUT.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Get a file that a cell exported."""
    from . import export as command

    command.run(sandbox, path, target=output, step=step, everything=everything, as_json=as_json)


@app.command()
def demo(
    directory: Annotated[
        Path, typer.Option(help="Where notebooks, files and the demo's log go.")
    ] = Path(".demo"),
    kernel: Annotated[str, typer.Option(help="Name of the kernel that runs them.")] = "dagger",
    only: Annotated[OptionalText, typer.Option(help="Name of one notebook.")] = None,
    as_json: Json = False,
) -> None:
    """Run the demo notebooks and say where the results are."""
    from . import demo as command

    command.run(directory=directory, kernel=kernel, only=only, as_json=as_json)


@app.command()
def check(as_json: Json = False) -> None:
    """Check the log's hash chain, every stored file and every layer. Exit code 1: the log is damaged."""
    from . import check as command

    command.run(as_json=as_json)


@app.command()
def gc(
    keep: Annotated[
        OptionalText,
        typer.Option(
            help="Keep the layers used last, up to this size, and the bases.", metavar="SIZE"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove caches that nothing uses now; the log brings back what is needed."""
    from . import gc as command

    command.run(keep=keep, as_json=as_json)


@app.command()
def audit(
    since: Annotated[
        OptionalText, typer.Option(help="From this date or time on.", metavar="TIME")
    ] = None,
    until: Annotated[OptionalText, typer.Option(help="Before it.", metavar="TIME")] = None,
    user: Annotated[OptionalText, typer.Option(help="Only this owner's sandboxes.")] = None,
    sandbox: Annotated[
        OptionalText, typer.Option(help="Only this one: id (or its beginning), path, or 'latest'.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="For people, as JSON lines, or for a spreadsheet.")
    ] = Format.TABLE,
    output: Annotated[
        OptionalPath, typer.Option("--output", "-o", help="Where to write it.", metavar="FILE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say who ran what when."""
    from . import audit as command

    command.run(
        since=since,
        until=until,
        user=user,
        sandbox=sandbox,
        form=form,
        target=output,
        as_json=as_json,
    )


@app.command()
def purge(
    sandbox: Annotated[str, typer.Argument(help="Id (or its beginning), path, or 'latest'.")],
    yes: Annotated[bool, typer.Option("--yes", help="Really: it cannot be undone.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a sandbox for good: its steps, results, files and layers. A tombstone stays in the log."""
    from . import purge as command

    command.run(sandbox, confirmed=yes, as_json=as_json)
