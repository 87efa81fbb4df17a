"""A real JupyterLab with the panel, driven by Debian's Chromium.

Playwright's asynchronous interface is used: its synchronous one keeps an event loop running in the
process, which breaks the asyncio tests after it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..conftest import ROOT, borrow_base

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EXTENSION = ROOT / "dagger_kernel" / "labextension"
SHOTS = Path(os.environ.get("DAGGER_KERNEL_SCREENSHOTS", ROOT / ".test-data" / "screenshots"))
ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def tools():
    """Skip, with the reason, where a browser test cannot run."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    for module in ("playwright", "jupyterlab"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    sys.path.insert(0, str(ROOT / "labextension"))
    try:
        import hatch_build
    finally:
        sys.path.pop(0)
    if not hatch_build.is_current(ROOT / "labextension", EXTENSION):
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        reason = hatch_build.why_not() or hatch_build.build(ROOT / "labextension", EXTENSION)
        if reason:
            pytest.skip(f"the panel is not built: {reason}")


@dataclass
class Lab:
    """A running JupyterLab."""

    url: str
    token: str
    root: Path
    data_dir: Path
    process: subprocess.Popen

    def request(self, path: str, method: str = "GET", body: object = None):
        request = urllib.request.Request(
            f"{self.url}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            data = response.read()
        return json.loads(data) if data.startswith((b"{", b"[")) else data

    def notebook(self, name: str, cells: list[str], kernel: str = "dagger") -> str:
        content = {
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell-{number}",
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                    "source": source,
                }
                for number, source in enumerate(cells, 1)
            ],
            "metadata": {"kernelspec": {"name": kernel, "display_name": kernel}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.root / name).write_text(json.dumps(content), "utf-8")
        return name

    def kernels(self) -> list[dict]:
        return self.request("api/kernels")

    def stop_kernels(self) -> None:
        for session in self.request("api/sessions"):
            self.request(f"api/sessions/{session['id']}", "DELETE")


@pytest.fixture(scope="session")
def lab(tools, shared_base, tmp_path_factory):
    home = tmp_path_factory.mktemp("lab")
    root = home / "notebooks"
    root.mkdir()
    data_dir = borrow_base(shared_base, home / "dagger_kernel")
    share = home / "share"
    (share / "labextensions").mkdir(parents=True)
    (share / "kernels").mkdir()
    (share / "labextensions" / "dagger-kernel-lab").symlink_to(EXTENSION)
    (share / "kernels" / "dagger").symlink_to(ROOT / "kernelspec" / "python")
    # The same kernel without a room prepared ahead, so that a cell meets a replay itself.
    cold = json.loads((ROOT / "kernelspec" / "python" / "kernel.json").read_text("utf-8"))
    cold["env"] = {"DAGGER_KERNEL_STANDBY": "false"}
    (share / "kernels" / "dagger-cold").mkdir()
    (share / "kernels" / "dagger-cold" / "kernel.json").write_text(json.dumps(cold), "utf-8")
    configs = home / "config" / "jupyter_server_config.d"
    configs.mkdir(parents=True)
    shutil.copy(ROOT / "jupyter-config" / "server-config" / "dagger_kernel.json", configs)
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    environment = os.environ | {
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(share),
        "JUPYTER_PATH": str(share),  # before the environment, which may hold an older panel
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "DAGGER_KERNEL_DATA_DIR": str(data_dir),
        "PYTHONPATH": str(ROOT),
    }
    log = (home / "server.log").open("wb")
    process = subprocess.Popen(
        [
            sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser",
            "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}",
            "--LabApp.extension_manager=readonly",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            f"--LabApp.workspaces_dir={home / 'workspaces'}",
            f"--LabApp.user_settings_dir={home / 'settings'}",
            "--LabApp.expose_app_in_browser=True",
        ],
        cwd=home, env=environment, stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    lab = Lab(f"http://127.0.0.1:{port}", token, root, data_dir, process)
    deadline = time.monotonic() + 60
    while True:
        try:
            lab.request("api/status")
            break
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail((home / "server.log").read_text("utf-8", "replace")[-4000:])
            time.sleep(0.2)
    served = lab.request("lab/extensions/dagger-kernel-lab/sources.sha256")
    assert served == (EXTENSION / "sources.sha256").read_bytes(), "another panel is served"
    yield lab
    lab.stop_kernels()
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    log.close()


class Screen:
    """What a test does with one page."""

    def __init__(self, lab: Lab, page):
        self.lab, self.page = lab, page
        self.problems: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))

    def _console(self, message):
        if message.type == "error":
            self.problems.append(f"console: {message.text} {message.location}")

    @property
    def panel(self):
        return self.page.locator("#dagger-kernel-panel")

    async def open(self, notebook: str, *, idle: bool = True) -> None:
        workspace = secrets.token_hex(4)
        address = (
            f"{self.lab.url}/lab/workspaces/{workspace}/tree/{notebook}?token={self.lab.token}"
        )
        await self.page.goto(address)
        await self.loaded(idle=idle)

    async def loaded(self, *, idle: bool = True) -> None:
        await self.page.locator("#jupyterlab-splash").wait_for(state="detached", timeout=60_000)
        if idle:
            await self.idle()

    async def idle(self, seconds: float = 120) -> None:
        """Wait until the kernel is ready: a cell run earlier is dropped without a word."""
        button = self.page.get_by_role("button", name=re.compile(r"\| Idle$"))
        await button.wait_for(timeout=seconds * 1000)

    async def show_panel_without_tabs(self) -> None:
        if not await self.panel.is_visible():
            await self.page.get_by_role("tab", name="Sandbox", exact=True).click()

    async def show_panel(self, tab: str = "Files") -> None:
        await self.show_panel_without_tabs()
        await self.panel.get_by_role("tab", name=re.compile(tab)).click()

    async def run(self, number: int, seconds: float = 120) -> None:
        """Run one cell of the visible notebook and wait for its end."""
        cell = self.cell(number)
        prompt = cell.locator(".jp-InputPrompt").first
        before = await prompt.inner_text()
        await cell.locator(".cm-content").first.click()
        await self.page.keyboard.press("Control+Enter")
        await self.until(
            prompt.inner_text,
            lambda text: text != before and re.match(r"\[\d+\]", text),
            seconds,
        )

    def cell(self, number: int):
        notebook = self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        return notebook.locator(".jp-CodeCell").nth(number - 1)

    async def until(self, ask, good, seconds: float = 20):
        deadline = time.monotonic() + seconds
        while True:
            value = await ask()
            if good(value):
                return value
            assert time.monotonic() < deadline, f"still {value!r} after {seconds} s"
            await asyncio.sleep(0.1)

    async def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SHOTS / f"{name}.png")

    async def axe(self, selector: str) -> None:
        """Fail on what axe calls serious or critical, within our own elements."""
        script = ROOT / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
        if not script.exists():
            pytest.skip("axe-core is not installed (jlpm install in labextension/)")
        await self.page.add_script_tag(path=str(script))
        found = await self.page.evaluate(
            "s => axe.run(s, {resultTypes: ['violations']}).then(r => r.violations)", selector
        )
        bad = [
            (item["id"], item["impact"], [node["html"][:200] for node in item["nodes"][:3]])
            for item in found
            if item["impact"] in ("serious", "critical")
        ]
        assert not bad, bad


@pytest.fixture
async def screen(lab, request):
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = await browser.new_context(
            viewport={"width": 1500, "height": 950}, accept_downloads=True
        )
        page = await context.new_page()
        page.set_default_timeout(20_000)
        screen = Screen(lab, page)
        yield screen
        await screen.shot(f"last-of-{request.node.name}")
        await browser.close()
    lab.stop_kernels()
