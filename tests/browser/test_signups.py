"""The sign-up story: a file goes in, a chart and a clean list come out, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import dagger_kernel.demo

DEMO = os.path.dirname(dagger_kernel.demo.__file__)
CODE_CELLS = 7


async def drop(screen, path):
    """Drop a file from the desktop onto the panel."""
    data = list(Path(path).read_bytes())
    transfer = await screen.page.evaluate_handle(
        """([name, bytes]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], name, {type: 'text/csv'}));
            return transfer;
        }""",
        [os.path.basename(path), data],
    )
    target = screen.panel.locator(".dk-Files")
    await target.dispatch_event("dragover", {"dataTransfer": transfer})
    await screen.panel.get_by_text("Drop to put into the sandbox").wait_for()
    await target.dispatch_event("drop", {"dataTransfer": transfer})


async def test_the_sign_up_story(lab, screen, tmp_path):
    shutil.copy(f"{DEMO}/signups.ipynb", lab.root)
    await screen.open("signups.ipynb")
    await screen.show_panel()
    await screen.panel.get_by_text("Files that cells write appear here.").wait_for()
    await screen.shot("01-empty")

    await drop(screen, f"{DEMO}/q3-signups.csv")
    row = screen.panel.get_by_role("button", name="q3-signups.csv", exact=True)
    await row.wait_for()
    await screen.shot("02-dropped")

    for number in range(1, CODE_CELLS + 1):
        await screen.run(number, seconds=180)
    chart = screen.panel.get_by_role("button", name="signups-by-week.png", exact=True)
    clean = screen.panel.get_by_role("button", name="q3-signups-deduped.csv", exact=True)
    await chart.wait_for()
    await clean.wait_for()
    await screen.shot("03-results")
    await screen.axe("#dagger-kernel-panel")
    await screen.axe(".dk-Bundle")

    await chart.click()
    image = screen.panel.locator(".dk-Preview-image img")
    await image.wait_for()
    await screen.until(lambda: image.evaluate("i => i.naturalWidth"), lambda width: width > 500)
    await screen.shot("04-chart")
    await screen.axe("#dagger-kernel-panel")
    chart_bytes = await download(screen, "Download signups-by-week.png", tmp_path)
    assert chart_bytes.startswith(b"\x89PNG")

    await screen.panel.get_by_role("button", name="All files").click()
    await clean.click()
    table = screen.panel.get_by_role("table")
    await table.wait_for()
    await screen.shot("05-table")
    await screen.axe("#dagger-kernel-panel")
    clean_bytes = await download(screen, "Download q3-signups-deduped.csv", tmp_path)
    assert int(await table.get_attribute("aria-rowcount")) == clean_bytes.count(b"\n")

    # The page is reloaded, the kernel is killed: everything is still there.
    await screen.page.reload()
    await screen.loaded()
    await screen.show_panel()
    await chart.wait_for()
    (kernel,) = lab.kernels()
    killed = pid_of(kernel["id"])
    os.kill(killed, signal.SIGKILL)
    await screen.until(
        lambda: resolved(lambda: pid_of(kernel["id"])), lambda pid: pid not in (None, killed), 60
    )
    # JupyterLab tells of it, and shows no "Idle" before the next cell, whatever the kernel.
    await screen.page.get_by_role("button", name="Ok").click()
    await screen.run(CODE_CELLS, seconds=180)
    text = await screen.cell(CODE_CELLS).locator(".jp-OutputArea").inner_text()
    assert "rows," in text
    await clean.wait_for()
    assert await download(screen, "Download q3-signups-deduped.csv", tmp_path) == clean_bytes
    assert await download(screen, "Download signups-by-week.png", tmp_path) == chart_bytes
    await screen.shot("06-after-the-kill")
    assert screen.problems == []


async def download(screen, label, folder):
    async with screen.page.expect_download() as waiting:
        await screen.panel.get_by_role("link", name=label, exact=True).click()
    done = await waiting.value
    path = folder / "downloaded"
    await done.save_as(path)
    return path.read_bytes()


async def resolved(ask):
    return ask()


def pid_of(kernel_id):
    """Return the process of a kernel, by the connection file in its command line."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    command = file.read().decode("utf-8", "replace")
            except OSError:
                continue
            if f"kernel-{kernel_id}.json" in command:
                return int(entry)
    return None
