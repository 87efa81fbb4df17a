import time

import pytest

from dagger_kernel.errors import LogError
from dagger_kernel.log.history import glob
from dagger_kernel.steps import Kind

from .helpers import make_result, make_step


@pytest.fixture
def sessions(log):
    """Three kernel starts on two sandboxes of one owner, and another owner's."""
    first, second = log.create_sandbox("ada", "a"), log.create_sandbox("ada", "b")
    for sandbox in (first, second, first):
        number = log.start_session(sandbox.id)
        parent = log.tip(sandbox.id)
        for line in (1, 2, 3):
            parent = cell(log, sandbox, parent, number, line, f"s{number} = {line}")
    other = log.create_sandbox("bob", "a")
    cell(log, other, None, log.start_session(other.id), 1, "secret")
    return first, second


def cell(log, sandbox, parent, session, line, source, **payload):
    payload = {"session": session, "execution_count": line} | payload
    step = log.append(make_step(sandbox, parent, source=source, payload=payload))
    value = {
        "output_type": "execute_result",
        "data": {"text/plain": [f"<{line}", ">"]},
        "metadata": {},
        "execution_count": line,
    }
    log.finish(make_result(step, outputs=[value] if line == 2 else []))
    return step


def test_tail_is_the_end_of_all_sessions(log, sessions):
    assert log.history("ada", "tail", n=4) == [
        (2, 3, "s2 = 3"),
        (3, 1, "s3 = 1"),
        (3, 2, "s3 = 2"),
        (3, 3, "s3 = 3"),
    ]
    assert len(log.history("ada")) == 9
    assert log.history("ada", "tail", n=0) == []
    assert log.history("eve") == []


def test_output_is_the_text_of_the_value(log, sessions):
    assert log.history("ada", "tail", n=2, output=True) == [
        (3, 2, ("s3 = 2", "<2>")),
        (3, 3, ("s3 = 3", None)),
    ]


def test_range_counts_sessions_from_the_newest(log, sessions):
    assert log.history("ada", "range", session=1) == [
        (1, 1, "s1 = 1"), (1, 2, "s1 = 2"), (1, 3, "s1 = 3"),
    ]  # fmt: skip
    assert log.history("ada", "range", start=2, stop=3) == [(3, 2, "s3 = 2")]
    assert log.history("ada", "range", session=-1, start=3) == [(2, 3, "s2 = 3")]
    assert log.history("ada", "range", session=None, start=None, stop=2) == [(3, 1, "s3 = 1")]
    assert log.history("ada", "range", session=99) == []


@pytest.mark.parametrize(
    ("start", "stop", "lines"),
    [
        (-2, None, [2, 3]),
        (-2, -1, [2]),
        (1, -1, [1, 2]),
        (-100, None, [1, 2, 3]),
        (2, 0, [2, 3]),
        (-3, 500, [1, 2, 3]),
        (0, 3, [1, 2]),
    ],
)
def test_a_range_counts_negative_lines_from_the_end(log, sessions, start, stop, lines):
    for session in (0, -1, 1):
        found = log.history("ada", "range", session=session, start=start, stop=stop)
        assert [line for _session, line, _source in found] == lines
    assert log.history("ada", "range", session=99, start=start, stop=stop) == []


def test_search_takes_a_glob(log, sessions):
    assert log.history("ada", "search", pattern="s? = 2") == [
        (1, 2, "s1 = 2"), (2, 2, "s2 = 2"), (3, 2, "s3 = 2"),
    ]  # fmt: skip
    assert log.history("ada", "search", pattern="s[^12]*", n=1) == [(3, 3, "s3 = 3")]
    assert log.history("ada", "search", pattern="= 2") == []
    assert len(log.history("ada", "search", pattern=None)) == 9
    assert log.history("ada", "search", pattern="secret") == []


def test_a_unique_search_names_each_input_once_at_its_last_place(log, sandbox):
    parent = None
    for line, source in enumerate(["a", "b", "a", "c", "b"], 1):
        parent = cell(log, sandbox, parent, 1, line, source)
    assert log.history("owner", "search", pattern="*", unique=True) == [
        (1, 3, "a"), (1, 4, "c"), (1, 5, "b"),
    ]  # fmt: skip
    assert log.history("owner", "search", pattern="*", unique=True, n=2) == [
        (1, 4, "c"),
        (1, 5, "b"),
    ]


def test_only_stored_cells_are_in_the_history(log, sandbox):
    first = cell(log, sandbox, None, 1, 1, "shown")
    second = cell(log, sandbox, first, 1, 2, "hidden", store_history=False)
    log.append(make_step(sandbox, second, kind=Kind.REWIND, payload={"to": first.id}))
    log.append(
        make_step(
            sandbox, second, source="ran when the kernel died", payload={"execution_count": 3}
        )
    )
    assert log.history("owner") == [(0, 3, "ran when the kernel died"), (1, 1, "shown")]


def test_one_sandbox_alone(log, sessions):
    first, second = sessions
    assert [entry[0] for entry in log.history("ada", sandbox_id=second.id)] == [2, 2, 2]
    assert log.history("ada", "range", sandbox_id=second.id, session=0, start=3) == [
        (2, 3, "s2 = 3")
    ]
    assert log.history("bob", sandbox_id=first.id) == []


def test_a_search_reads_on_until_it_found_enough(log, sandbox, monkeypatch):
    monkeypatch.setattr("dagger_kernel.log.history._PAGE", 3)
    parent = None
    for line in range(1, 12):
        parent = cell(log, sandbox, parent, 1, line, f"x{line}")
    assert log.history("owner", "search", pattern="x?", n=2) == [(1, 8, "x8"), (1, 9, "x9")]
    assert len(log.history("owner", "search")) == 11


def test_an_unknown_kind_is_refused(log):
    with pytest.raises(LogError, match="no history of kind"):
        log.history("ada", "sideways")


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*", ["", "a\nb"], []),
        ("a*", ["a", "abc"], ["ba", "A"]),
        ("*z", ["z", "abz", "zz"], ["za"]),
        ("a*b*c", ["abc", "axbxbxc"], ["acb", "abcd"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("*a*b", ["ab", "xaab", "abab"], ["ba"]),
        ("?", ["a", "\n"], ["", "ab"]),
        ("[ab]", ["a", "b"], ["c", "ab"]),
        ("[a-c]x", ["bx"], ["dx"]),
        ("[^a]", ["b", "^"], ["a", ""]),
        ("[]]", ["]"], ["a"]),
        ("[^]]", ["a"], ["]"]),
        ("[z-a]", [], ["z", "a"]),
        ("[", ["["], ["a"]),
        ("[[]x", ["[x"], ["x"]),
        (r"\d.+(", [r"\d.+("], ["1a("]),
        ("[&&~~||--]", ["&", "~"], ["a"]),
        ("", [""], ["a"]),
    ],
)
def test_globs(pattern, yes, no):
    expression = glob(pattern)
    assert [text for text in yes if not expression.fullmatch(text)] == []
    assert [text for text in no if expression.fullmatch(text)] == []


def test_no_glob_takes_long():
    started = time.process_time()
    assert not glob("*a" * 40 + "b").fullmatch("a" * 5000)
    assert time.process_time() - started < 5


def test_odd_numbers_in_a_payload_do_no_harm(log, sandbox):
    for line, session in ((1, "x"), (2, True), (3, 1 << 40), (4, -5), (5, 1.5)):
        cell(log, sandbox, None, session, line, f"x{line}")
    cell(log, sandbox, None, 1, "not a number", "y")
    assert log.verify() == []
    assert sorted(entry[:2] for entry in log.history("owner")) == [
        (-5, 4), (0, 1), (0, 2), (0, 3), (0, 5),
    ]  # fmt: skip
