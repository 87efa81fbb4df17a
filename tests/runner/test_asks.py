"""Completion and inspection by a fork of the waiting process: the state stays as it was."""

from __future__ import annotations


def test_complete_and_inspect_saved_names(room):
    room.run(
        "warehouse_total = 3\nlog = []\ndef ship(order, fast=False):\n    'Send one order.'\n    return order"
    )
    runner = room.start()
    code = "s = '🎉🎉'; wareh"
    reply = runner.ask("complete", code=code, cursor_pos=len(code))
    assert "warehouse_total" in reply["matches"]
    assert (reply["cursor_start"], reply["cursor_end"]) == (10, 15)
    assert any(
        item["text"] == "warehouse_total"
        for item in reply["metadata"]["_jupyter_types_experimental"]
    )
    reply = runner.ask("inspect", code="ship(", cursor_pos=3, detail_level=0)
    assert reply["found"]
    assert "Send one order." in reply["data"]["text/plain"]
    assert not runner.ask("inspect", code="nothing_here", cursor_pos=5)["found"]
    reply = runner.ask("complete", code="log.appe", cursor_pos=8)
    assert (reply["matches"], reply["cursor_start"]) == (["append"], 4)
    runner.step("log.append(warehouse_total)\nlog", execution_count=2)
    assert runner.finish().result == "[3]"


def test_is_complete(room):
    runner = room.start()
    assert runner.ask("is_complete", code="x = 1")["status"] == "complete"
    assert runner.ask("is_complete", code="for i in range(3):") == {
        "status": "incomplete",
        "indent": "    ",
    }
    assert runner.ask("is_complete", code="x = )")["status"] == "invalid"
    runner.close()


def test_variables(room):
    room.run("alpha = 1\nbeta = 'text'")
    runner = room.start()
    names = {entry["name"] for entry in runner.ask("variables")["variables"]}
    assert {"alpha", "beta"} <= names
    runner.close()


def test_a_hanging_answer_ends_and_holds_up_no_step(room):
    room.run(
        "class Slow:\n    def __dir__(self):\n        import time; time.sleep(60)\nslow = Slow()",
    )
    runner = room.start()
    runner.send(
        {
            "type": "ask",
            "id": "a",
            "kind": "complete",
            "content": {"code": "slow.", "cursor_pos": 5},
        }
    )
    runner.step("1 + 1", execution_count=2)
    result = runner.finish(30)
    assert result.result == "2"
    (answer,) = result.of("answer")
    assert answer["content"]["matches"] == []


def test_ask_after_the_step_started(room):
    runner = room.start()
    runner.step("import time; time.sleep(0.5)")
    runner.send({"type": "ask", "id": "late", "kind": "complete", "content": {"code": "x"}})
    result = runner.finish()
    assert result.of("answer")[0]["content"]["status"] == "error"
