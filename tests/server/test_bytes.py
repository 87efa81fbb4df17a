from __future__ import annotations

import asyncio
import io
import json
import os
import zipfile
from urllib.parse import quote

import pytest

from dagger_kernel.engines.base import FileInfo
from dagger_kernel.server.paths import clean_path, disposition
from dagger_kernel.server.ranges import UnsatisfiableRangeError, parse_range

from .conftest import FILE_BYTES, multipart

DATA = bytes(range(256)) * 4


@pytest.fixture
def sandbox(site):
    identity = site.sandbox()
    site.cell(
        identity,
        files={
            "data.bin": DATA,
            "empty.dat": b"",
            "page.html": b"<script>alert(1)</script>",
            "pic.svg": b"<svg onload='alert(1)'/>",
            "chart.png": b"\x89PNG",
            "deep/er/table.csv": b"a\n1\n",
        },
    )
    return identity


def at(sandbox, path, step="1"):
    return f"/sandboxes/{sandbox}/artifacts/{step}/{quote(path.encode('utf-8', 'surrogateescape'))}"


# -- bytes


async def test_sends_bytes_as_a_download(site, sandbox):
    response = await site.fetch(at(sandbox, "data.bin"))
    assert response.code == 200
    assert response.body == DATA
    assert response.headers["Content-Length"] == str(len(DATA))
    assert response.headers["Content-Disposition"].startswith('attachment; filename="data.bin"')
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]
    assert response.headers["Accept-Ranges"] == "bytes"


async def test_sends_an_empty_file(site, sandbox):
    response = await site.fetch(at(sandbox, "empty.dat"))
    assert (response.code, response.body) == (200, b"")
    ranged = await site.fetch(at(sandbox, "empty.dat"), headers={"Range": "bytes=0-"})
    assert ranged.code == 416
    assert ranged.headers["Content-Range"] == "bytes */0"


async def test_sends_a_large_file_in_pieces(site, sandbox):
    large = os.urandom(20 << 20)
    site.cell(sandbox, files={"large.bin": large})
    response = await site.fetch(at(sandbox, "large.bin", "2"))
    assert response.body == large
    part = await site.fetch(at(sandbox, "large.bin", "2"), headers={"Range": "bytes=1000000-"})
    assert part.body == large[1000000:]


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=5-9", 5, 9),
        ("bytes=1000-", 1000, 1023),
        ("bytes=-24", 1000, 1023),
        ("bytes=1020-9999", 1020, 1023),
        ("bytes=-5000", 0, 1023),
    ],
)
async def test_sends_a_range(site, sandbox, wanted, first, last):
    response = await site.fetch(at(sandbox, "data.bin"), headers={"Range": wanted})
    assert response.code == 206
    assert response.body == DATA[first : last + 1]
    assert response.headers["Content-Range"] == f"bytes {first}-{last}/1024"


@pytest.mark.parametrize(
    "wanted", ["bytes=0-1,5-9", "lines=1-2", "bytes=9-5", "bytes=x-", "bytes=-"]
)
async def test_a_range_that_is_not_understood_is_ignored(site, sandbox, wanted):
    response = await site.fetch(at(sandbox, "data.bin"), headers={"Range": wanted})
    assert (response.code, response.body) == (200, DATA)


@pytest.mark.parametrize("wanted", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
async def test_a_range_outside_the_file(site, sandbox, wanted):
    response = await site.fetch(at(sandbox, "data.bin"), headers={"Range": wanted})
    assert response.code == 416
    assert json.loads(response.body)["error"] == "RangeError"


async def test_head_tells_the_size_only(site, sandbox):
    response = await site.fetch(at(sandbox, "data.bin"), method="HEAD")
    assert response.code == 200
    assert response.headers["Content-Length"] == "1024"
    assert response.body == b""


async def test_unchanged_bytes_are_not_sent_again(site, sandbox):
    first = await site.fetch(at(sandbox, "data.bin"))
    tag = first.headers["ETag"]
    again = await site.fetch(at(sandbox, "data.bin"), headers={"If-None-Match": tag})
    assert (again.code, again.body) == (304, b"")
    stale = await site.fetch(
        at(sandbox, "data.bin"), headers={"If-Range": '"old"', "Range": "bytes=0-1"}
    )
    assert stale.code == 200
    fresh = await site.fetch(
        at(sandbox, "data.bin"), headers={"If-Range": tag, "Range": "bytes=0-1"}
    )
    assert fresh.code == 206


@pytest.mark.parametrize("path", ["page.html", "pic.svg"])
@pytest.mark.parametrize("query", ["", "?inline=1"])
async def test_what_could_run_code_is_only_downloaded(site, sandbox, path, query):
    response = await site.fetch(at(sandbox, path) + query)
    assert response.headers["Content-Disposition"].startswith("attachment;")
    assert "html" not in response.headers["Content-Type"]
    assert response.headers["Content-Security-Policy"].endswith("; sandbox")


async def test_harmless_types_can_be_shown(site, sandbox):
    response = await site.fetch(at(sandbox, "chart.png") + "?inline=1")
    assert response.headers["Content-Disposition"].startswith("inline;")
    assert response.headers["Content-Type"] == "image/png"


@pytest.mark.parametrize(
    "name",
    [
        "two words.txt",
        "café 🎉.txt",
        'it\'s "quoted".txt',
        "line\nbreak.txt",
        "-rf.txt",
        ".hidden",
        "semi;colon&.txt",
        "%41.txt",
        "raw\udcff.bin",
        "a" * 200,
        "\u202egnp.exe",
        "back\\slash",
    ],
)
async def test_any_name_can_be_fetched(site, sandbox, name):
    site.cell(sandbox, files={name: name.encode("utf-8", "surrogateescape")})
    response = await site.fetch(at(sandbox, name, "2"))
    assert response.code == 200
    assert response.body == name.encode("utf-8", "surrogateescape")
    header = response.headers["Content-Disposition"]
    assert "\n" not in header
    assert header.count('"') == 2
    assert header.isascii()


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "%2e%2e/secret",
        "a/../../b",
        "/etc/passwd",
        "%2Fetc/passwd",
        "a//b",
        "a/./b",
        "a%00b",
        "a/",
        "x" * 300,
        "y/" * 3000 + "z",
    ],
)
async def test_bad_paths_are_refused(site, sandbox, path):
    for address in (
        f"/sandboxes/{sandbox}/artifacts/1/{path}",
        f"/sandboxes/{sandbox}/files/{path}",
        f"/sandboxes/{sandbox}/archive?file=1/{path}",
    ):
        response = await site.fetch(address)
        assert response.code in (400, 404, 302), (address, response.code)
        assert response.code != 200


@pytest.mark.parametrize("identity", ["..", "%2e%2e", "a/b", "a" * 65, "%00", "*", "a b"])
async def test_bad_ids_are_refused(site, sandbox, identity):
    assert (await site.fetch(f"/sandboxes/{identity}/steps")).code in (302, 400, 404)


async def test_bytes_that_are_gone(site, sandbox):
    digest = site.log.artifacts(sandbox)[0].blob
    site.log.blobs.delete(digest)
    path = site.log.artifacts(sandbox)[0].path
    response = await site.fetch(at(sandbox, path))
    assert response.code == 410
    assert json.loads(response.body)["error"] == "BlobError"


# -- archives


async def test_archives_the_newest_results(site, sandbox):
    site.cell(sandbox, files={"data.bin": b"new"})
    await site.json(f"/sandboxes/{sandbox}/uploads", status=201, **multipart([("in.csv", b"1")]))
    response = await site.fetch(f"/sandboxes/{sandbox}/archive")
    assert response.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
        assert archive.testzip() is None
        assert archive.read("data.bin") == b"new"
        assert archive.read("deep/er/table.csv") == b"a\n1\n"
        assert len(archive.namelist()) == 6


async def test_archives_chosen_versions(site, sandbox):
    site.cell(sandbox, files={"data.bin": b"new"})
    response = await site.fetch(f"/sandboxes/{sandbox}/archive?file=1/data.bin&file=2/data.bin")
    with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
        assert archive.read("data.bin") == DATA
        assert archive.read("data (2).bin") == b"new"


@pytest.mark.parametrize("item", ["1", "x/data.bin", "1/none", "9/data.bin", "-1/data.bin"])
async def test_archives_nothing_that_is_not_there(site, sandbox, item):
    assert (await site.fetch(f"/sandboxes/{sandbox}/archive?file={item}")).code in (400, 404)


# -- uploads


async def test_takes_several_files_as_one_step(site, sandbox):
    files = [("a.csv", b"1"), ("empty.txt", b""), ("café 🎉.txt", b"\0\xff\r\n--xy not the end")]
    done = await site.json(f"/sandboxes/{sandbox}/uploads", status=201, **multipart(files))
    assert done["skipped"] == []
    assert [f["size"] for f in done["step"]["files"]] == [1, 0, len(files[2][1])]
    assert len(site.log.steps(sandbox)) == 2
    for path, (_, data) in zip(done["paths"], files, strict=True):
        assert (await site.fetch(at(sandbox, path, "2"))).body == data


async def test_the_limit_itself_fits_and_one_byte_more_is_told(site, sandbox):
    files = [("full.bin", b"x" * FILE_BYTES), ("over.bin", b"x" * (FILE_BYTES + 1))]
    done = await site.json(f"/sandboxes/{sandbox}/uploads", status=201, **multipart(files))
    assert [f["path"] for f in done["step"]["files"]] == ["attachments/full.bin"]
    assert done["skipped"][0]["name"] == "over.bin"
    assert done["skipped"][0]["size"] == FILE_BYTES + 1
    alone = multipart([("over.bin", b"x" * (FILE_BYTES + 1))])
    error = await site.json(f"/sandboxes/{sandbox}/uploads", status=413, **alone)
    assert "over.bin" in error["message"]
    assert len(site.log.steps(sandbox)) == 2


async def test_the_same_name_gets_another_and_the_same_file_does_not(site, sandbox):
    path = f"/sandboxes/{sandbox}/uploads"
    await site.json(path, status=201, **multipart([("a.csv", b"1")]))
    second = await site.json(path, status=201, **multipart([("a.csv", b"2")]))
    assert second["paths"] == ["attachments/a (2).csv"]
    third = await site.json(path, status=200, **multipart([("a.csv", b"1")]))
    assert third["step"] is None
    assert third["paths"] == ["attachments/a.csv"]
    assert len(site.log.steps(sandbox)) == 3


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "C:\\Users\\me\\a.txt", "a\nb.txt", 'q"uote.txt', "a\0b"],
)
async def test_a_name_cannot_leave_the_attachments(site, sandbox, name):
    done = await site.json(f"/sandboxes/{sandbox}/uploads", status=201, **multipart([(name, b"x")]))
    assert done["paths"][0].startswith("attachments/")
    clean_path(done["paths"][0])
    assert done["paths"][0].count("/") == 1


async def test_an_exact_name_may_come_before_the_file(site, sandbox):
    body = (
        b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n"50%22 off.txt"\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="50%22 off.txt"\r\n\r\nx\r\n'
        b"--b--\r\n"
    )
    done = await site.json(
        f"/sandboxes/{sandbox}/uploads",
        status=201,
        method="POST",
        body=body,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )
    assert done["paths"] == ["attachments/50%22 off.txt"]


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"a", "text/plain", 415),
        (b"a", "multipart/form-data", 415),
        (b"", "multipart/form-data; boundary=b", 400),
        (b"--b--\r\n", "multipart/form-data; boundary=b", 400),
        (
            b'--b\r\nContent-Disposition: form-data; name=x; filename="a"\r\n\r\ncut',
            "multipart/form-data; boundary=b",
            400,
        ),
        (
            b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--",
            "multipart/form-data; boundary=b",
            400,
        ),
        (
            b"--b\r\n" + b"X: y\r\n" * 9999 + b"\r\nx\r\n--b--",
            "multipart/form-data; boundary=b",
            400,
        ),
        (b"--bx\r\n\r\n", "multipart/form-data; boundary=b", 400),
    ],
)
async def test_a_broken_body_logs_nothing(site, sandbox, body, content_type, code):
    error = await site.json(
        f"/sandboxes/{sandbox}/uploads",
        status=code,
        method="POST",
        body=body,
        headers={"Content-Type": content_type},
    )
    assert error["error"] in ("MultipartError", "ValueError")
    assert len(site.log.steps(sandbox)) == 1


async def test_too_many_files_at_a_time(site, sandbox):
    files = [(f"{number}.txt", b"") for number in range(1001)]
    await site.json(f"/sandboxes/{sandbox}/uploads", status=413, **multipart(files))
    assert len(site.log.steps(sandbox)) == 1


async def test_a_thousand_files_are_one_step(site, sandbox):
    files = [(f"{number}.txt", b"%d" % number) for number in range(1000)]
    done = await site.json(f"/sandboxes/{sandbox}/uploads", status=201, **multipart(files))
    assert len(done["paths"]) == 1000


# -- states an engine holds


class HeldState:
    """An engine that holds every state."""

    name = "held"

    def __init__(self):
        self.closed = False

    async def has(self, key):
        return True

    async def files(self, key, path="", *, recursive=False):
        if path == "":
            return [
                FileInfo(path="held.bin", kind="file", size=len(DATA), mtime=1.5),
                FileInfo(path="dir", kind="directory"),
                FileInfo(path="link", kind="link"),
            ]
        if path == "dir":
            return []
        raise FileNotFoundError(path)

    async def read(self, key, path, *, offset=0, length=None):
        for start in range(offset, offset + length, 100):
            yield DATA[start : min(start + 100, offset + length)]

    async def close(self):
        self.closed = True


@pytest.fixture
def held(site):
    engine = HeldState()
    site.extension.states._engine = engine
    return engine


async def test_reads_any_file_of_a_state_the_engine_holds(site, sandbox, held):
    listing = await site.json(f"/sandboxes/{sandbox}/files?step=1")
    assert listing["complete"]
    assert {entry["path"]: entry["kind"] for entry in listing["entries"]} == {
        "held.bin": "file",
        "dir": "directory",
        "link": "link",
    }
    whole = await site.fetch(f"/sandboxes/{sandbox}/files/held.bin?step=1")
    assert whole.body == DATA
    part = await site.fetch(
        f"/sandboxes/{sandbox}/files/held.bin", headers={"Range": "bytes=90-310"}
    )
    assert (part.code, part.body) == (206, DATA[90:311])
    assert (await site.json(f"/sandboxes/{sandbox}/files/dir"))["entries"] == []
    assert (await site.fetch(f"/sandboxes/{sandbox}/files/link")).code == 400
    assert (await site.fetch(f"/sandboxes/{sandbox}/files/none")).code == 404
    assert (await site.fetch(f"/sandboxes/{sandbox}/files/none/deeper")).code == 404


async def test_tells_which_steps_need_no_replay(site, sandbox, held, monkeypatch):
    second = site.cell(sandbox, "2")

    async def has(key):
        return key == second.key

    monkeypatch.setattr(held, "has", has)
    assert (await site.json(f"/sandboxes/{sandbox}/cached"))["cached"] == [second.id]
    assert (await site.json(f"/sandboxes/{site.sandbox()}/cached"))["cached"] == []


async def test_the_engine_is_let_go_when_nobody_asks(site, sandbox, held, monkeypatch):
    monkeypatch.setattr("dagger_kernel.server.states.IDLE_SECONDS", 0.05)
    await site.json(f"/sandboxes/{sandbox}/files")
    await asyncio.sleep(0.3)
    assert held.closed
    assert site.extension.states._engine is None


async def test_the_engine_is_released_with_the_server(site, held):
    await site.extension.stop_extension()
    assert held.closed


# -- small parts


def test_ranges():
    assert parse_range(None, 10) is None
    assert parse_range("bytes = 2 - 3", 10) == (2, 2)
    with pytest.raises(UnsatisfiableRangeError):
        parse_range("bytes=10-", 10)
    assert parse_range("bytes=" + "9" * 5000 + "-", 10) is None


def test_dispositions_hide_what_moves_the_cursor():
    header = disposition("a/\u202egnp.exe\r\nX: y")
    assert header == "attachment; filename=\"_gnp.exe__X_ y\"; filename*=UTF-8''_gnp.exe__X%3A%20y"
