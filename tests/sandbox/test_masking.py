"""What is masked, whatever way the text is cut."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from dagger_kernel.sandbox.masking import LEAST, MASK, Mask, MaskedFrames

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


def test_other_frames_are_masked_in_every_text_and_end_what_waits():
    frames = MaskedFrames(Mask(["stream-or-secret"]))
    assert list(frames.take({"type": "stream", "name": "stderr", "text": "stream-or"}, b"")) == []
    heard = list(frames.take({"type": "display", "data": {"a/b": ["x stream-or-secret"]}}, b"data"))
    assert heard == [
        ({"type": "stream", "name": "stderr", "text": "stream-or"}, b""),
        ({"type": "display", "data": {"a/b": ["x ***"]}}, b"data"),
    ]
    assert list(frames.take({"type": "overflow"}, b"\xff stream-or-secret")) == [
        ({"type": "overflow"}, b"\xff ***")
    ]


def test_lines_of_a_key_are_masked_one_by_one():
    key = "-----BEGIN KEY-----\nAAAABBBBCCCC\nDD\n-----END KEY-----\n"
    assert Mask([key]).text("line: AAAABBBBCCCC!") == "line: ***!"


def test_short_values_and_no_values_cost_nothing():
    assert not Mask(["short", ""])
    frame = ({"type": "stream", "name": "stdout", "text": "short"}, b"")
    assert list(MaskedFrames(Mask(["short"])).take(*frame)) == [frame]
