"""The panel's views and states, in a real JupyterLab."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import zipfile

import pytest

from .test_signups import download, drop

MAKE_FILES = r"""
import json, pathlib
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path("notes.md").write_text("# Notes\n\nSome *text*. <script>document.title='owned'</script>\n")
pathlib.Path("data.json").write_text(json.dumps({"b": [1, 2], "a": None}))
pathlib.Path("page.html").write_text("<h1>Hi</h1><script>document.querySelector('h1').textContent='ran'</script>")
pathlib.Path("pic.svg").write_text(
    "<svg xmlns='http://www.w3.org/2000/svg' width='60' height='60' onload=\"parent.document.title='owned'\">"
    "<circle cx='30' cy='30' r='28' fill='teal'/></svg>")
pathlib.Path("out/long.csv").write_text("n,square,name\n" + "".join(f"{i},{i*i},row {i}\n" for i in range(100_000)))
pathlib.Path("raw.bin").write_bytes(bytes(range(256)))
pathlib.Path("empty.txt").write_text("")
pathlib.Path("two words ü.txt").write_text("hello\n")
print("made")
"""

PDF = r"""
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(3, 2)); axes.plot([1, 3, 2]); figure.savefig("plot.pdf"); plt.close(figure)
"""


@pytest.fixture
async def files(lab, screen, request):
    """A notebook whose first cell made files of every kind."""
    name = f"{request.node.name}.ipynb"
    await screen.open(lab.notebook(name, [MAKE_FILES + PDF, "1 / 0", "x = open('notes.md')"]))
    await screen.run(1)
    await screen.show_panel()
    await screen.panel.get_by_role("button", name="notes.md").wait_for()
    return screen


async def show(screen, name):
    back = screen.panel.get_by_role("button", name="All files")
    if await back.count():
        await back.click()
    await screen.panel.get_by_role("button", name=name, exact=True).click()
    await screen.panel.locator(".dk-Detail-title", has_text=name).wait_for()


async def test_previews(files, tmp_path):
    screen, panel = files, files.panel
    await show(screen, "notes.md")
    await panel.locator(".dk-Preview-markdown h1", has_text="Notes").wait_for()
    assert await panel.locator(".dk-Preview-markdown script").count() == 0

    await show(screen, "data.json")
    text = await panel.locator(".dk-Preview-text").inner_text()
    assert json.loads(text) == {"b": [1, 2], "a": None}
    assert '\n  "b": [' in text

    await show(screen, "page.html")
    frame = panel.frame_locator("iframe")
    assert await frame.locator("h1").inner_text() == "Hi"
    await screen.shot("10-html")
    await panel.get_by_role("button", name="Run scripts").click()
    await frame.locator("h1", has_text="ran").wait_for()
    assert await panel.locator("iframe").get_attribute("sandbox") == "allow-scripts"

    await show(screen, "pic.svg")
    image = panel.locator(".dk-Preview-image img")
    await screen.until(lambda: image.evaluate("i => i.naturalWidth"), lambda width: width > 0)
    await screen.shot("11-svg")

    await show(screen, "plot.pdf")
    source = await panel.locator("iframe").get_attribute("src")
    assert source.startswith("blob:")
    await asyncio.sleep(2)  # Chromium's viewer tells nobody when it is done
    await screen.shot("12-pdf")

    await show(screen, "empty.txt")
    await panel.get_by_text("The file is empty").wait_for()
    await show(screen, "raw.bin")
    await panel.get_by_text("No preview for this kind of file").wait_for()
    assert await download(screen, "Download raw.bin", tmp_path) == bytes(range(256))
    await show(screen, "two words ü.txt")
    assert await download(screen, "Download two words ü.txt", tmp_path) == b"hello\n"
    assert await screen.page.title() != "owned"


async def test_a_long_table_keeps_few_rows_in_the_document(files):
    screen, panel = files, files.panel
    await show(screen, "out/long.csv")
    table = panel.get_by_role("table")
    # The first 2 MiB are read; all of that can be scrolled.
    await panel.get_by_text("are shown").wait_for()
    count = int(await table.get_attribute("aria-rowcount"))
    assert count > 80_000
    assert await table.get_by_role("row").count() < 100
    await table.evaluate("t => t.scrollTo(0, t.scrollHeight)")
    last = table.locator(f'[aria-rowindex="{count}"]')
    await last.wait_for()
    number = int(await last.get_by_role("cell").first.inner_text())
    assert number == count - 2
    await screen.shot("13-long-table")
    await screen.axe("#dagger-kernel-panel")


async def test_opens_in_a_tab_and_saves_a_copy(files):
    screen, panel = files, files.panel
    await show(screen, "data.json")
    await panel.get_by_role("button", name="Open in a tab").click()
    await screen.page.locator(".dk-PreviewTab .dk-Preview-text").wait_for()
    await screen.shot("14-tab")
    # The notebook is no longer the active document, and the panel still follows it.
    await show(screen, "two words ü.txt")
    await panel.get_by_role("button", name=re.compile("Save a copy")).click()
    await screen.page.get_by_role("tab", name="two words ü.txt").wait_for()
    assert (screen.lab.root / "two words ü.txt").read_bytes() == b"hello\n"


async def test_downloads_several_files_as_one_archive(files, tmp_path):
    screen, panel = files, files.panel
    await panel.get_by_role("checkbox", name="Select data.json").check()
    await panel.get_by_role("checkbox", name="Select notes.md").check()
    async with screen.page.expect_download() as waiting:
        await panel.get_by_role("link", name="Download 2 files").click()
    done = await waiting.value
    await done.save_as(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert sorted(archive.namelist()) == ["data.json", "notes.md"]


async def test_the_log_tells_what_happened(files):
    screen, panel = files, files.panel
    await screen.run(2)
    await screen.run(3)
    await screen.show_panel("Log")
    steps = panel.locator(".dk-Step")
    await screen.until(steps.count, lambda count: count == 3)
    await panel.locator(".dk-Step.dk-mod-error", has_text="1 / 0").get_by_role("button").click()
    await panel.locator(".dk-Step-outputs", has_text="ZeroDivisionError").wait_for()
    await screen.shot("20-log")
    await screen.axe("#dagger-kernel-panel")
    await panel.get_by_role("button", name="Insert as a cell").click()
    await screen.until(
        lambda: screen.page.locator(".jp-CodeCell").count(), lambda count: count == 4
    )
    await panel.get_by_role("button", name="Go to cell").click()
    active = screen.page.locator(".jp-Cell.jp-mod-active")
    assert "1 / 0" in await active.locator(".cm-content").inner_text()


async def test_status_restart_and_reopen(files):
    screen, panel = files, files.panel
    await screen.show_panel("Status")
    await panel.get_by_text("Limits of one cell").wait_for()
    await panel.get_by_text("Works here").wait_for()
    await screen.shot("30-status")
    await screen.axe("#dagger-kernel-panel")

    await panel.get_by_role("button", name="Restart as new").click()
    await screen.page.get_by_role("button", name="Restart", exact=True).click()
    await screen.show_panel("Files")
    await panel.get_by_text("Files that cells write appear here.").wait_for(timeout=60_000)
    await screen.idle()

    await screen.show_panel("Status")
    await panel.get_by_text("ended by a restart").wait_for()
    await screen.shot("31-older")
    await panel.get_by_role("button", name="Look").first.click()
    await panel.get_by_text("You look at an older sandbox").wait_for()
    await screen.show_panel("Files")
    await panel.get_by_role("button", name="notes.md").wait_for()
    await screen.shot("32-older-files")
    await panel.get_by_role("button", name="Back").click()

    await screen.show_panel("Status")
    older = panel.locator(".dk-Older", has_text="ended by a restart").first
    await older.get_by_role("button", name="Reopen").click()
    await screen.page.get_by_role("button", name="Reopen", exact=True).click()
    await screen.show_panel("Files")
    await panel.get_by_role("button", name="notes.md").wait_for(timeout=60_000)
    await screen.idle()
    await screen.run(3)
    output = screen.cell(3).locator(".jp-OutputArea")
    assert "Error" not in await output.inner_text()


async def test_continues_from_an_earlier_step(lab, screen):
    await screen.open(lab.notebook("rewind.ipynb", ["x = 'first'", "x = 'second'", "print(x)"]))
    for number in (1, 2, 3):
        await screen.run(number)
    await screen.show_panel("Log")
    await screen.panel.locator(".dk-Step", has_text="first").get_by_role("button").click()
    await screen.panel.get_by_role("button", name="Continue from here").click()
    await screen.page.get_by_role("button", name="Continue", exact=True).click()
    await screen.panel.get_by_text("Back to step 1").wait_for()
    await screen.run(3)
    assert "first" in await screen.cell(3).locator(".jp-OutputArea").inner_text()
    await screen.shot("21-rewound")
    await screen.axe("#dagger-kernel-panel")


async def test_a_lost_variable_is_told_with_the_cell_to_run(lab, screen):
    source = "import socket; handle = socket.socket(); kept = 1"
    await screen.open(lab.notebook("lost.ipynb", [source, "kept"]))
    await screen.run(1)
    await screen.run(2)
    await screen.show_panel("Status")
    row = screen.panel.locator(".dk-Lost", has_text="handle")
    await row.wait_for()
    await screen.shot("33-lost")
    await screen.axe("#dagger-kernel-panel")
    await row.get_by_role("button").click()
    active = screen.page.locator(".jp-Cell.jp-mod-active")
    assert "handle" in await active.locator(".cm-content").inner_text()


async def test_without_a_sandbox(lab, screen):
    await screen.open(lab.notebook("plain.ipynb", ["1"], kernel="python3"))
    await screen.show_panel_without_tabs()
    await screen.panel.get_by_text("No sandbox").wait_for()
    await screen.shot("40-none")
    await screen.axe("#dagger-kernel-panel")


async def test_when_the_server_does_not_answer(files):
    screen, panel = files, files.panel
    await screen.page.route("**/dagger-kernel/api/**", lambda route: route.abort())
    await panel.get_by_role("button", name="Refresh").click()
    await panel.get_by_text("The server does not answer").wait_for()
    assert await panel.get_by_role("button", name="notes.md").is_visible()
    await screen.shot("41-offline")
    await screen.axe("#dagger-kernel-panel")
    await screen.page.unroute("**/dagger-kernel/api/**")
    await panel.get_by_text("The server does not answer").wait_for(state="detached")


async def test_when_the_log_cannot_be_read(lab, screen):
    answer = {"error": "LogVersionError", "message": "The log is newer.", "remedy": "Update."}
    await screen.page.route(
        "**/dagger-kernel/api/sandboxes?**",
        lambda route: route.fulfill(status=503, json=answer),
    )
    await screen.open(lab.notebook("broken.ipynb", ["1"]))
    await screen.show_panel()
    await screen.panel.get_by_text("The log is newer. Update.").wait_for()
    await screen.shot("42-error")
    await screen.axe("#dagger-kernel-panel")


async def test_in_the_dark(files):
    screen, panel = files, files.panel
    await screen.page.evaluate(
        "window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"
    )
    await screen.page.locator("body[data-jp-theme-light='false']").wait_for(state="attached")
    await asyncio.sleep(1)  # colours fade in; axe would measure them half way
    await screen.run(2)
    await screen.show_panel("Files")
    await screen.shot("50-dark-files")
    await screen.axe("#dagger-kernel-panel")
    await screen.axe(".dk-Bundle")
    await screen.show_panel("Log")
    await panel.locator(".dk-Step").last.get_by_role("button").click()
    await panel.locator(".dk-Step-outputs").wait_for()
    await screen.shot("51-dark-log")
    await screen.axe("#dagger-kernel-panel")
    await screen.show_panel("Status")
    await panel.get_by_text("Limits of one cell").wait_for()
    await screen.shot("52-dark-status")
    await screen.axe("#dagger-kernel-panel")
    await screen.page.evaluate(
        "window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})"
    )
    await screen.page.locator("body[data-jp-theme-light='true']").wait_for(state="attached")


async def test_by_keyboard(files):
    screen, panel = files, files.panel
    await panel.get_by_role("tab", name=re.compile("Files")).focus()
    await screen.page.keyboard.press("ArrowRight")
    assert await panel.get_by_role("tab", selected=True).inner_text() == "Log1"
    await screen.page.keyboard.press("Tab")
    await screen.page.keyboard.press("Enter")
    await panel.locator(".dk-Step-source").wait_for()
    await panel.get_by_role("tab", selected=True).focus()
    await screen.page.keyboard.press("Home")
    await panel.get_by_role("button", name="data.json").focus()
    await screen.page.keyboard.press("Enter")
    title = panel.locator(".dk-Detail-title")
    await screen.until(
        lambda: title.evaluate("t => t === document.activeElement"), lambda focused: focused
    )
    await screen.page.keyboard.press("Escape")
    await panel.get_by_role("button", name="Upload").wait_for()


async def test_a_large_upload_shows_progress_and_one_too_large_is_refused(lab, screen, tmp_path):
    await screen.open(lab.notebook("large.ipynb", ["1"]))
    await screen.show_panel()
    full = tmp_path / "full.bin"
    full.write_bytes(bytes(range(256)) * (16 << 12))
    over = tmp_path / "over.bin"
    over.write_bytes(bytes((16 << 20) + 1))
    network = await screen.page.context.new_cdp_session(screen.page)
    await network.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 12 << 20},
    )
    await screen.panel.locator("input[type=file]").set_input_files([full, over])
    bar = screen.panel.get_by_role("progressbar")
    await bar.wait_for()
    values = []
    for _ in range(6):
        values.append(await bar.evaluate("b => b.position", timeout=2000))
        await asyncio.sleep(0.2)
        if not await bar.count():
            break
    await screen.shot("60-progress")
    await screen.panel.get_by_role("button", name="full.bin", exact=True).wait_for(timeout=60_000)
    await screen.panel.get_by_text("over.bin: it is larger than the limit").wait_for()
    await screen.shot("61-too-large")
    await screen.axe("#dagger-kernel-panel")
    assert len({round(value, 2) for value in values}) > 1, values
    assert await download(screen, "Download full.bin", tmp_path) == full.read_bytes()


async def test_an_upload_waits_for_the_running_cell(lab, screen, tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("a\n1\n")
    read = "import os; print(os.listdir('attachments'))"
    await screen.open(lab.notebook("late.ipynb", ["import time; time.sleep(35)", read]))
    await screen.show_panel()
    running = asyncio.create_task(screen.run(1, 120))
    await screen.panel.get_by_text("running").first.wait_for()
    await drop(screen, path)
    await screen.panel.get_by_text("waits for the running cell").wait_for(timeout=40_000)
    await screen.shot("62-waiting")
    await running
    await screen.panel.get_by_role("button", name="late.csv").wait_for(timeout=40_000)
    await screen.run(2)
    assert "late.csv" in await screen.cell(2).locator(".jp-OutputArea").inner_text()


async def test_a_saved_untrusted_notebook_shows_its_files(lab, screen):
    bundle = {
        "version": 1,
        "sandbox": "f" * 32,
        "step": "e" * 32,
        "files": [
            {"path": "<img src=x onerror=document.title='owned'>.csv", "kind": "new", "size": 3,
             "mime": "text/csv", "blob": "a" * 64, "skipped": None},
            {"path": "big.bin", "kind": "new", "size": 1 << 30, "mime": "", "blob": None,
             "skipped": "larger than 16 MiB"},
        ],
        "more": 4,
    }  # fmt: skip
    name = lab.notebook("saved.ipynb", ["1"])
    content = json.loads((lab.root / name).read_text())
    content["cells"][0]["outputs"] = [
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {
                "application/vnd.dagger-kernel.files+json": bundle,
                "text/html": "<b>fallback</b>",
                "text/plain": "fallback",
            },
        },
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {
                "application/vnd.dagger-kernel.files+json": {"x": 1},
                "text/plain": "plain words",
            },
        },
    ]
    (lab.root / name).write_text(json.dumps(content))
    await screen.open(name)
    drawn = screen.page.locator(".dk-Bundle").first
    await drawn.get_by_text("onerror").wait_for()
    assert await drawn.get_by_text("not exported: larger than 16 MiB").is_visible()
    assert await drawn.get_by_text("… and 4 more").is_visible()
    assert await screen.page.locator(".dk-Bundle", has_text="plain words").is_visible()
    assert await screen.page.title() != "owned"
    await screen.shot("70-saved")
    await screen.axe(".dk-Bundle")


async def test_a_name_in_the_output_opens_the_preview(files):
    screen = files
    await screen.page.get_by_role("tab", name="Sandbox", exact=True).click()  # hide the panel
    await screen.page.locator(".dk-Bundle").get_by_role("button", name="data.json").click()
    await screen.panel.locator(".dk-Preview-text").wait_for()


async def test_the_status_bar_opens_the_panel(files):
    screen = files
    await screen.page.get_by_role("tab", name="Sandbox", exact=True).click()
    await screen.page.get_by_role("button", name=re.compile(r"Sandbox: \d+ step")).click()
    await screen.panel.get_by_text("Limits of one cell").wait_for()


async def test_a_cold_replay_shows_its_progress(lab, screen):
    sources = [f"import time; time.sleep(1); x{number} = {number}" for number in range(4)]
    name = lab.notebook("replay.ipynb", [*sources, "print(x0 + x3)"], kernel="dagger-cold")
    await screen.open(name)
    for number in range(1, 5):
        await screen.run(number)
    await screen.show_panel("Log")
    await screen.panel.locator(".dk-Step").last.get_by_text("cached").wait_for()
    lab.stop_kernels()
    shutil.rmtree(lab.data_dir / "layers")
    await screen.page.reload()
    await screen.loaded()
    await screen.show_panel("Log")
    assert await screen.panel.get_by_text("cached").count() == 0
    running = asyncio.create_task(screen.run(5))
    await screen.panel.get_by_role("progressbar").wait_for()
    await screen.shot("22-replaying")
    await running
    assert "3" in await screen.cell(5).locator(".jp-OutputArea").inner_text()
    await screen.panel.get_by_role("progressbar").wait_for(state="detached")


async def test_a_file_too_large_to_export_comes_from_the_sandbox(lab, screen, tmp_path):
    source = "import os; open('big.bin', 'wb').write(bytes(range(256)) * (17 << 12))"
    await screen.open(lab.notebook("big.ipynb", [source]))
    await screen.run(1)
    await screen.show_panel()
    await show(screen, "big.bin")
    await screen.panel.get_by_role("link", name="Download from the sandbox").wait_for()
    lab.stop_kernels()
    shutil.rmtree(lab.data_dir / "layers")
    await screen.panel.get_by_role("button", name="All files").click()
    await show(screen, "big.bin")
    await screen.panel.get_by_role("button", name="Get it from the sandbox").click()
    async with screen.page.expect_download() as waiting:
        await screen.panel.get_by_role("link", name="Download from the sandbox").click()
    await (await waiting.value).save_as(tmp_path / "big.bin")
    assert (tmp_path / "big.bin").read_bytes() == bytes(range(256)) * (17 << 12)
    await screen.shot("15-not-exported")
    await screen.axe("#dagger-kernel-panel")


async def test_files_of_the_file_browser_can_be_dragged_in(lab, screen):
    (lab.root / "drag me.csv").write_text("a,b\n")
    await screen.open(lab.notebook("drag.ipynb", ["1"]))
    await screen.show_panel()
    item = screen.page.locator(".jp-DirListing-item", has_text="drag me.csv")
    await item.wait_for()
    start, goal = await item.bounding_box(), await screen.panel.bounding_box()
    mouse = screen.page.mouse
    await mouse.move(start["x"] + 30, start["y"] + 8)
    await mouse.down()
    await mouse.move(start["x"] + 60, start["y"] + 30, steps=5)
    await mouse.move(goal["x"] + 100, goal["y"] + 200, steps=20)
    await screen.shot("63-dragging")
    await mouse.up()
    await screen.panel.get_by_role("button", name="drag me.csv", exact=True).wait_for()


async def test_many_files_can_be_filtered(lab, screen):
    source = "for i in range(40): open(f'part-{i:02}.txt', 'w').write(str(i))"
    await screen.open(lab.notebook("many.ipynb", [source]))
    await screen.run(1)
    await screen.show_panel()
    rows = screen.panel.locator(".dk-FileRow")
    await screen.until(rows.count, lambda count: count == 40)
    await screen.panel.get_by_role("searchbox").fill("part-3")
    await screen.until(rows.count, lambda count: count == 10)
    await screen.shot("16-filtered")
    await screen.axe("#dagger-kernel-panel")


async def test_all_files_of_a_step_as_an_archive(files, tmp_path):
    screen, panel = files, files.panel
    await screen.show_panel("Log")
    await panel.locator(".dk-Step").first.get_by_role("button").click()
    link = panel.get_by_role("link", name="Download all files of this step")
    await link.wait_for()
    await screen.shot("23-all-files")
    await screen.axe("#dagger-kernel-panel")

    async def fetched():
        async with screen.page.expect_download() as waiting:
            await link.click()
        await (await waiting.value).save_as(tmp_path / "all.zip")
        with zipfile.ZipFile(tmp_path / "all.zip") as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    first = await fetched()
    assert first["two words ü.txt"] == b"hello\n"
    assert "out/long.csv" in first
    # Nothing holds the state any more: it is made again when somebody asks.
    screen.lab.stop_kernels()
    shutil.rmtree(screen.lab.data_dir / "layers")
    await panel.locator(".dk-Step").first.get_by_role("button").first.click()
    await panel.locator(".dk-Step").first.get_by_role("button").first.click()
    await panel.get_by_role("button", name="Get all files of this step").click()
    await link.wait_for(timeout=60_000)
    again = await fetched()
    again.pop("plot.pdf"), first.pop("plot.pdf")  # it holds the time
    assert again == first


async def test_a_pasted_picture_is_there_in_the_next_cell(lab, screen):
    read = "print(sorted(__import__('os').listdir('attachments')))"
    name = lab.notebook("paste.ipynb", [read])
    content = json.loads((lab.root / name).read_text())
    note = {"cell_type": "markdown", "id": "note", "metadata": {}, "source": "A picture:"}
    content["cells"].insert(0, note)
    (lab.root / name).write_text(json.dumps(content))
    saved = (lab.root / name).stat().st_mtime_ns
    await screen.open(name)
    await screen.show_panel()
    cell = screen.page.locator(".jp-MarkdownCell").first
    await cell.dblclick()
    await cell.locator(".cm-content").click()
    await cell.locator(".cm-content").evaluate(
        """node => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array([137, 80, 78, 71])], 'plan b.png', {type: 'image/png'}));
            node.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
        }"""
    )
    row = screen.panel.locator(".dk-FileRow", has_text=".png")
    await row.wait_for()
    await screen.run(1)
    output = await screen.cell(1).locator(".jp-OutputArea").inner_text()
    assert ".png" in output
    await screen.shot("64-pasted")
    assert (lab.root / name).stat().st_mtime_ns == saved  # nobody saved the notebook
    await screen.page.keyboard.press("Control+s")
    await screen.until(
        lambda: asyncio.to_thread(lambda: (lab.root / name).stat().st_mtime_ns),
        lambda now: now != saved,
    )
    # The kernel finds it in the file now; it is the same one.
    await screen.run(1)
    assert await row.count() == 1
    assert output.count(".png") == 1
