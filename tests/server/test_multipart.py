from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dagger_kernel.server.multipart import (
    MultipartError,
    MultipartReader,
    PartData,
    PartStart,
    boundary_of,
)

from .conftest import multipart

TRICKY = st.lists(
    st.sampled_from(
        [b"\r", b"\n", b"-", b"--", b"--xyz", b"\r\n--xy", b"\r\n--xyzz"[:7], b"a", b"\0\xff"]
    ),
    max_size=12,
).map(b"".join)
NAMES = st.text(
    st.characters(exclude_characters="%\\", exclude_categories=("Cs",)), min_size=1, max_size=20
)


def read(body, cuts):
    reader = MultipartReader(b"xyz")
    parts = []
    places = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    for start, stop in zip(places, places[1:], strict=False):
        for event in reader.feed(body[start:stop]):
            if isinstance(event, PartStart):
                parts.append((event.filename, b""))
            elif isinstance(event, PartData):
                parts[-1] = (parts[-1][0], parts[-1][1] + event.data)
    return parts, reader.complete


@settings(deadline=None)
@given(
    st.lists(st.tuples(NAMES, TRICKY), max_size=4),
    st.lists(st.integers(0, 600), max_size=30),
)
def test_any_cut_of_the_body_gives_the_same_files(files, cuts):
    # Bytes that are the boundary itself cannot be sent with it; browsers choose another one.
    assume(not any(b"\r\n--xyz" in data for _, data in files))
    assert read(multipart(files)["body"], cuts) == (files, True)


def test_byte_by_byte():
    files = [("a", b"\r\n--xy\r\n"), ("b", b"")]
    body = multipart(files)["body"]
    assert read(body, range(len(body))) == (files, True)


def test_an_unfinished_body_is_noticed():
    body = multipart([("a", b"data")])["body"]
    assert read(body[:-6], [])[1] is False


def test_preamble_and_epilogue_are_skipped():
    body = b"hello\r\n" + multipart([("a", b"1")])["body"] + b"bye\r\n--xyz\r\nX: y"
    assert read(body, [3, 50]) == ([("a", b"1")], True)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_garbage_is_refused_or_ignored(garbage):
    try:
        read(b"--xyz\r\n" + garbage, [5, 9])
    except MultipartError:
        pass


@pytest.mark.parametrize(
    ("header", "boundary"),
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        ('Multipart/Form-Data; charset=utf-8; boundary="a b"', b"a b"),
    ],
)
def test_boundaries(header, boundary):
    assert boundary_of(header) == boundary


@pytest.mark.parametrize(
    "header", ["", "text/plain", "multipart/form-data", "multipart/form-data; boundary=" + "x" * 71]
)
def test_no_boundary(header):
    with pytest.raises(MultipartError):
        boundary_of(header)
