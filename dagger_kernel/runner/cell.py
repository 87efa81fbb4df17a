"""The cell process: waits in standby, runs the one step, saves the state, ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from . import own
from .channel import Channel
from .history import History
from .interrupts import Interrupts
from .limits import complete, enforce, relax
from .page import ENDING, STARTING, SharedPage
from .preload import preload
from .skills import find_skills
from .standin import session_class
from .stdin import Stdin
from .streams import flush, flush_c, open_streams


class Cell:
    """The cell process's life.

    Parameters
    ----------
    channel, page
        The talk with the supervisor.
    state_dir, home
        Where state is kept; the user's directory.
    nonce
        Identity of the execution.
    shell
        A warm shell from before the fork, or None to make one now.
    names
        Libraries to import while idle, when the shell is made now.
    own_pids
        See `limits.enforce`.
    """

    def __init__(
        self,
        channel: Channel,
        page: SharedPage,
        *,
        state_dir: str,
        home: str,
        nonce: str,
        shell: Any = None,
        names: Sequence[str] = (),
        own_pids: bool = False,
    ) -> None:
        self.channel = channel
        self.page = page
        self.state_dir = state_dir
        self.home = home
        self.nonce = nonce
        self.shell = shell
        self._jobs: list[Callable[[], None]] = [partial(preload, name) for name in reversed(names)]
        self.own_pids = own_pids
        self.stdin = Stdin(channel)
        self.interrupts = Interrupts(page)
        self.session: Any = None
        self._asks: dict[int, tuple[int, dict[str, Any]]] = {}
        self._lent: dict[str, tuple[str, str | None]] = {}
        self._warmed = False

    def prepare(self) -> None:
        """Get ready for the step: environment, streams, shell, state."""
        open_streams(self.channel)
        self.interrupts.install()
        self.interrupts.on_wake = self._wake
        self.stdin.install()
        prepare_environment(self.home)
        if self.shell is None:
            from .warmup import make_shell

            self.shell = make_shell()
            self._jobs.append(self._exercise)
        from . import comms, execute, loop, quirks, sources  # noqa: F401 - all before `own.keep`
        from .display import Outlet

        Outlet.channel = self.channel
        Outlet.errors = 0
        comms.install(self.shell)
        quirks.install()
        self.channel.on_comm = comms.dispatch
        loop.Loop.on_readable = (self.channel.sock.fileno(), self.channel.take)
        self.shell.user_ns["_dh"][:] = [os.getcwd()]
        self.session = session_class()(self.state_dir, self.shell.user_ns)
        self.session.open()
        self.shell.interrupts = self.interrupts
        self.shell.saved_names = self.session.saved_names
        self.shell.state = self.session
        own.keep()
        self.channel.send({"type": "ready"})

    def _wake(self) -> None:
        if self.session is not None:
            self.session.abandon = True

    def wait(self) -> dict[str, Any]:
        """Answer questions and warm up until the step comes; return it."""
        while True:
            if self.session is not None:
                self.session.abandon = False
            busy = not self._warmed
            sources: list[Any] = [self.channel.sock, *self._asks]
            ready, _, _ = select.select(sources, [], [], 0 if busy else None)
            for reader in ready:
                if reader in self._asks:
                    self._finish_ask(reader)
            if self.channel.sock in ready:
                frame = self.channel.poll(0)
                if frame is not None and frame[0]["type"] == "step":
                    for reader in list(self._asks):
                        self._finish_ask(reader, kill=True)
                    return frame[0]
                if frame is not None and frame[0]["type"] == "ask":
                    self._start_ask(frame[0])
            elif busy:
                self._warm_a_little()

    def _warm_a_little(self) -> None:
        """Do one job, or import what the state needs."""
        if self._jobs:
            self._jobs.pop()()
            return
        try:
            self.session.warm()
        except Exception as error:
            print(f"warming up failed: {type(error).__name__}: {error}", file=sys.stderr)
            self.session.abandon = False
        if not self.session.abandon:
            from .warmup import rehearse

            rehearse(self.shell)
            self.session.rehearse()
            self._warmed = True
            self.channel.send({"type": "warmed"})

    def _exercise(self) -> None:
        from .warmup import OWN, exercise

        for name in OWN:
            preload(name)
        own.keep()
        exercise(self.shell)

    def _start_ask(self, head: dict[str, Any]) -> None:
        from .asks import ask_in_fork

        flush()
        _child, reader = ask_in_fork(
            self.shell, self.session, str(head.get("kind")), dict(head.get("content") or {})
        )
        self._asks[reader] = (_child, head)

    def _finish_ask(self, reader: int, *, kill: bool = False) -> None:
        from .asks import empty, read_answer

        child, head = self._asks.pop(reader)
        kind, content = str(head.get("kind")), dict(head.get("content") or {})
        if kill:
            os.kill(child, signal.SIGKILL)
            os.close(reader)
            result = empty(kind, content)
        else:
            result = read_answer(reader, kind, content)
        os.waitpid(child, 0)
        self.channel.send({"type": "answer", "id": head.get("id"), "content": result})

    def run(self, step: dict[str, Any]) -> None:
        """Run the step, save the state, and tell the supervisor of both."""
        from .display import Outlet
        from .execute import mend, run_step, say, settle_first_word, transform, transformers
        from .sources import Sources
        from .state.withheld import Withheld

        self.page.phase = STARTING
        limits = complete(step.get("limits"))
        lent = {str(name): str(value) for name, value in (step.get("env") or {}).items()}
        self.interrupts.limits = self.shell.step_limits = limits
        Outlet.text_bytes, Outlet.file_bytes = limits["output_bytes"], limits["file_bytes"]
        self.stdin.allowed = bool(step.get("allow_stdin"))
        self.stdin.recorded = step.get("answers")
        enforce(limits, own_pids=self.own_pids)
        if step.get("language", "python") == "bash":
            from .bash import forget
            from .bash import run_step as run_bash

            self._lend_environment(lent)
            report = run_bash(step, self.interrupts, self.state_dir, self.home)
            forget(self.state_dir, lent)
            self._executed(report)
            self.channel.send({"type": "saved", "state": {}})
            return
        source = str(step.get("source", ""))
        plain, known = transform(self.shell, source), transformers(self.shell)
        try:
            self.session.begin(
                plain,
                cell=int(step.get("execution_count") or 0),
                step=self.nonce,
                seed=bytes.fromhex(self.nonce),
                recompute=bool(step.get("recompute")),
            )
        except Exception as error:
            text = f"the state could not be read, so the cell did not run: {type(error).__name__}: {error}"
            Outlet.send(
                {"type": "error", "ename": "StateError", "evalue": text, "traceback": [text]}
            )
            self._executed({"status": "error", "exit_code": 1, "shown": True})
            self.channel.send({"type": "saved", "state": {"error": text}})
            return
        # After the saved environment, which has none of these.
        self._lend_environment(lent)
        if transformers(self.shell) != known:
            plain = transform(self.shell, source)
        settle_first_word(self.shell, source)
        history = History(self.shell, self.state_dir)
        Sources.install(self.shell, history)
        history.begin(source, int(step.get("execution_count") or 1))
        self.shell.earlier_error = history.last_error
        report = run_step(self.shell, step, self.interrupts)
        flush_c()
        if not self.channel.own:
            # A child that the cell forked came all the way: it is not the one to save.
            flush()
            os._exit(int(report["exit_code"]))
        self._executed(report)
        relax()
        withheld = Withheld(lent)
        with contextlib.suppress(OSError):
            history.keep(
                source,
                plain,
                stored=bool(step.get("store_history", True)) and not step.get("silent"),
            )
            if report["status"] != "ok" and self.shell.last_error is not None:
                history.keep_error(self.shell.last_error, withheld)
            for name, secret in history.withhold_stored(withheld):
                say(
                    f"not kept for later cells: what %store wrote to {name}: it holds the secret {secret}"
                )
        self.session.ended, self.session.asked = report["status"], bool(self.stdin.answers)
        state = self._save()
        if state.get("error") and mend(sure=True):
            state = self._save()
        for entry in state.get("lost", ()):
            if entry.get("new"):
                say(
                    f"not kept for later cells: {entry.get('name')} ({entry.get('type')}): {entry.get('reason')}"
                )
        flush()
        self.channel.send({"type": "saved", "state": state})

    def _executed(self, report: dict[str, Any]) -> None:
        """Tell that user code has ended; wait until the supervisor has ended what it left running."""
        self.page.phase = ENDING
        self.channel.take()
        self.channel.send_in_order({"type": "executed", "answers": self.stdin.answers, **report})

    def _lend_environment(self, variables: dict[str, str]) -> None:
        """Set variables for this step only: they must not be saved with the others."""
        for name, value in variables.items():
            self._lent[name] = (value, os.environ.get(name))
            os.environ[name] = value

    def _save(self) -> dict[str, Any]:
        for name, (lent, before) in self._lent.items():
            if os.environ.get(name) == lent:
                del os.environ[name]
                if before is not None:
                    os.environ[name] = before
        self.session.secrets = {name: lent for name, (lent, _) in self._lent.items()}
        try:
            return dict(self.session.save())
        except Exception as error:
            return {"error": f"the variables could not be saved: {type(error).__name__}: {error}"}


def prepare_environment(home: str) -> None:
    """Set what every cell finds: its home, its environment's commands, UTF-8."""
    os.environ["HOME"] = home
    environment = os.path.join(home, ".venv")
    if "VIRTUAL_ENV" not in os.environ and os.path.isdir(environment):
        os.environ["VIRTUAL_ENV"] = environment
        commands = os.path.join(environment, "bin")
        if commands not in os.environ.get("PATH", "").split(":"):
            os.environ["PATH"] = f"{commands}:{os.environ.get('PATH', os.defpath)}"
    if not any(os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        os.environ["LANG"] = "C.UTF-8"
    # Live output of child interpreters, whose stdout is a pipe.
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with contextlib.suppress(OSError):
        os.chdir(home)
    sys.argv = [""]
    sys.path[:] = ["", *(entry for entry in sys.path if entry not in ("", home))]
    find_skills()


def main(cell: Cell) -> None:
    """Run the cell process from start to end; never returns."""
    code = 1
    try:
        cell.prepare()
        cell.run(cell.wait())
        code = 0
    except ConnectionError:
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        flush()
        os._exit(code)
