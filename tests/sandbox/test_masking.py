"""What is masked, whatever way the text is cut."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagger_kernel.sandbox.masking import LEAST, MASK, SURE, Mask, MaskedFrames

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=LEAST, max_size=40).filter(
    lambda value: MASK not in value
)


def said(mask, pieces):
    frames = MaskedFrames(mask)
    out = []
    for name, piece in pieces:
        out += frames.take({"type": "stream", "name": name, "text": piece}, b"")
    out += frames.rest()
    text = {"stdout": "", "stderr": ""}
    for head, _ in out:
        text[head["name"]] += head["text"]
    return text


@given(VALUES, TEXT, TEXT, st.data())
def test_a_value_is_never_said_however_the_stream_is_cut(value, before, after, data):
    whole = before + value + after
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    heard = said(Mask([value]), [("stdout", piece) for piece in pieces])["stdout"]
    assert value not in heard
    assert MASK in heard


@given(VALUES, st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), TEXT)))
def test_text_without_a_value_arrives_whole(value, pieces):
    mask = Mask([value])
    wanted = {"stdout": "", "stderr": ""}
    for name, piece in pieces:
        wanted[name] += piece
    if all(mask.text(text) == text for text in wanted.values()):
        assert said(mask, pieces) == wanted


@given(
    st.binary(max_size=20),
    st.text(min_size=9, max_size=40).filter(str.isascii),
    st.binary(max_size=20),
)
def test_base64_is_masked_at_every_offset(before, value, after):
    data = before + value.encode() + after
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(data).decode()
        heard = Mask([value]).text(text)
        if len(value) * 8 // 6 - 2 >= LEAST:
            assert MASK in heard


LONG = "github_pat_" + "aB3dE6gH9jK2" * 7
WRAPPED = {
    "base64 in lines": base64.encodebytes(LONG.encode()).decode(),
    "base64 in lines of other data": base64.encodebytes(b"x" * 70 + LONG.encode()).decode(),
    "base64 in Windows' lines": base64.encodebytes(LONG.encode()).decode().replace("\n", "\r\n"),
    "capital hexadecimal": base64.b16encode(LONG.encode()).decode(),
    "hexadecimal with spaces": LONG.encode().hex(" "),
    "hexadecimal with colons": LONG.encode().hex(":").upper(),
    "hexadecimal in lines": "\n".join(LONG.encode().hex()[i : i + 60] for i in range(0, 190, 60)),
}


@pytest.mark.parametrize("form", WRAPPED)
def test_digits_are_masked_also_in_lines_and_with_separators(form):
    text = f"before: {WRAPPED[form]} after\n"
    heard = Mask([LONG]).text(text)
    assert heard.startswith("before: ")
    assert heard.endswith(" after\n")
    assert MASK in heard
    assert len(heard) < 130  # what "x" * 70 made is there
    for size in (1, 7, 64):
        pieces = [("stdout", text[i : i + size]) for i in range(0, len(text), size)]
        # Only a beginning of a few characters at the end of a word is heard.
        assert len(said(Mask([LONG]), pieces)["stdout"]) - len(heard) <= SURE


@given(st.text(st.sampled_from("0123456789abcdef: \r\n"), max_size=200))
def test_other_digits_arrive_whole(text):
    assert Mask([LONG]).text(text) == text
    assert said(Mask([LONG]), [("stdout", char) for char in text])["stdout"] == text


def test_other_frames_are_masked_in_every_text():
    frames = MaskedFrames(Mask(["stream-or-secret"]))
    display = {"type": "display", "data": {"a/b": ["x stream-or-secret"]}}
    assert list(frames.take(display, b"data")) == [
        ({"type": "display", "data": {"a/b": ["x ***"]}}, b"data")
    ]
    assert list(frames.take({"type": "overflow"}, b"\xff stream-or-secret")) == [
        ({"type": "overflow"}, b"\xff ***")
    ]


def stream(text, name="stdout"):
    return {"type": "stream", "name": name, "text": text}, b""


DISPLAY = ({"type": "display", "data": {}}, b"")


def test_a_value_that_a_display_splits_is_masked():
    frames = MaskedFrames(Mask(["stream-or-secret"]))
    assert list(frames.take(*stream("a stream-or"))) == [stream("a ")]
    assert list(frames.take(*stream("stream-", "stderr"))) == []
    assert list(frames.take(*DISPLAY)) == [DISPLAY]
    assert list(frames.take(*stream("-secret b"))) == [stream("*** b")]
    assert list(frames.rest()) == [stream("stream-", "stderr")]


def test_what_is_hardly_a_values_beginning_keeps_its_place_before_a_display():
    frames = MaskedFrames(Mask(["stream-or-secret"]))
    assert list(frames.take(*stream("plots"))) == [stream("plot")]
    assert list(frames.take(*DISPLAY)) == [stream("s"), DISPLAY]
    assert list(frames.take(*DISPLAY)) == [DISPLAY]
    assert list(frames.take(*stream("tream-or-"))) == []
    assert list(frames.take(*stream("secret!"))) == [stream("***!")]


def test_a_line_is_heard_at_once_though_it_ends_like_a_value_begins():
    digits = b"stream-or-secret".hex(" ")
    frames = MaskedFrames(Mask(["stream-or-secret"]))
    assert list(frames.take(*stream("step 7\n"))) == [stream("step 7\n")]
    assert list(frames.take(*stream("\n"))) == [stream("\n")]
    assert list(frames.take(*stream("73 "))) == [stream("73 ")]
    assert list(frames.take(*stream(digits[3:] + "!"))) == [stream("***!")]


def test_what_completes_a_beginning_heard_before_input_is_masked():
    frames = MaskedFrames(Mask(["stream-or-secret"]))
    assert list(frames.take(*stream("stream"))) == []
    assert list(frames.rest()) == [stream("stream")]
    assert list(frames.rest()) == []
    assert list(frames.take(*stream("-or-secret."))) == [stream("***.")]


def test_much_output_costs_little():
    text = ("2026-01-01 INFO 17: a step finished in 0.37 s\n" * 6000)[: 256 << 10]
    for hostile in (
        text,
        LONG[:-1] * (len(text) // len(LONG)),
        LONG[0] * len(text),
        "\n" * len(text),
    ):
        frames = MaskedFrames(Mask([LONG]))
        start = time.perf_counter()
        heard = "".join(head["text"] for head, _ in frames.take(*stream(hostile)))
        assert time.perf_counter() - start < 0.5  # some milliseconds, and a busy machine
        assert hostile.startswith(heard)


def test_lines_of_a_key_are_masked_one_by_one():
    key = "-----BEGIN KEY-----\nAAAABBBBCCCC\nDD\n-----END KEY-----\n"
    assert Mask([key]).text("line: AAAABBBBCCCC!") == "line: ***!"


def test_short_values_and_no_values_cost_nothing():
    assert not Mask(["short", ""])
    frame = ({"type": "stream", "name": "stdout", "text": "short"}, b"")
    assert list(MaskedFrames(Mask(["short"])).take(*frame)) == [frame]
