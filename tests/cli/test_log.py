"""``dagger-kernel log``."""


def test_lists_sandboxes(cli, history):
    ran = cli("log")
    assert ran.code == 0
    assert history.id in ran.out
    assert "reports/q3.ipynb" in ran.out
    listed = cli("log", "--json").json["sandboxes"]
    assert [(one["id"], one["owner"], one["steps"]) for one in listed] == [(history.id, "ada", 4)]


def test_lists_steps(cli, history):
    ran = cli("log", history.id)
    lines = ran.out.splitlines()
    assert len(lines) == 5
    assert "upload" in lines[1]
    assert "attachments/in.csv" in lines[1]
    assert "250 ms" in lines[2]
    assert "error" in lines[3]
    assert "no result" in lines[4]
    steps = cli("log", history.id, "--json").json["steps"]
    assert [step["seq"] for step in steps] == [1, 2, 3, 4]
    assert [step["result"] and step["result"]["status"] for step in steps] == [
        "ok",
        "ok",
        "error",
        None,
    ]


def test_a_sandbox_has_several_names(cli, history):
    whole = cli("log", history.id, "--json").json
    for name in (history.id[:8], "latest", "reports/q3.ipynb"):
        assert cli("log", name, "--json").json == whole


def test_shows_all_of_a_step(cli, history):
    out = cli("log", "latest", 2).out
    for text in (
        "frame.to_csv('out.csv')",
        "saved red",
        "charts/week.png",
        "image/png",
        "larger than 16 MiB",
    ):
        assert text in out
    assert '"frame"' in out
    assert "\x1b" not in out
    step = cli("log", "latest", history.steps[1].id[:10], "--json").json
    assert step["source"].startswith("frame = read()")
    assert step["result"]["usage"]["wall_seconds"] == 0.25


def test_shows_an_error_as_text(cli, history):
    assert "ZeroDivisionError: division by zero" in cli("log", "latest", 3).out


def test_the_last_step_by_name(cli, history):
    assert "while True: pass" in cli("log", "latest", "latest").out


def test_users_text_is_not_markup(cli, history):
    """A notebook called like rich's markup must neither vanish nor break the table."""
    from dagger_kernel.log import open_log
    from dagger_kernel.settings import Settings

    store = open_log(Settings.load())
    store.create_sandbox("eve", "[red]x[/] \x1b]0;title\x07.ipynb")
    store.close()
    out = cli("log").out
    assert "[red]x[/]" in out
    assert "\x1b" not in out


def test_names_of_files_are_no_lines(cli, history):
    """A cell names files as it likes, and so does who uploads them."""
    import uuid

    from dagger_kernel.log import open_log
    from dagger_kernel.settings import Settings
    from dagger_kernel.steps import FileChange, Kind, Result, Status, Step

    name = "b\nstep 99 forged.txt\t\x1b[2J"
    store = open_log(Settings.load())
    common = {"base_digest": "b", "runner_digest": "r", "key": "k", "nonce": "n"}
    payload = {"files": [{"path": name, "blob": store.blobs.put(b"x"), "size": 1, "mode": 0o644}]}
    step = store.append(
        Step(
            id=uuid.uuid4().hex, sandbox_id=history.id, seq=0, parent_id=history.steps[-1].id, kind=Kind.UPLOAD,
            engine="x\nforged", payload=payload, **common,
        )
    )  # fmt: skip
    change = FileChange(path=name, kind="new", size=1, blob=store.blobs.put(b"x"))
    store.finish(Result(step_id=step.id, status=Status.OK, files=[change]))
    store.close()
    for args in (["log", "latest", "latest"], ["log", "latest"], ["audit"]):
        lines = cli(*args).out.splitlines()
        assert not any(line.strip().startswith(("step 99", "forged")) for line in lines)
        assert all(line.isprintable() for line in lines)


def test_without_a_log(cli):
    ran = cli("log")
    assert ran.code == 4
    assert "There is no log" in ran.err
    assert "Traceback" not in ran.err


def test_unknown_names(cli, history):
    assert cli("log", "nosuchsandbox").code == 5
    ran = cli("log", "latest", "99", "--json")
    assert ran.code == 5
    assert ran.out == ""
    import json

    error = json.loads(ran.err)["error"]
    assert error["type"] == "StepNotFoundError"
    assert error["remedy"]
