"""Exported files as display data."""

import base64
import json
from dataclasses import dataclass

from dagger_kernel.kernel.files import FILES_MIME, file_bundles
from dagger_kernel.kernel.previews import preview

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class File:
    path: str
    data: bytes | None = b""
    mime: str = "application/octet-stream"
    kind: str = "new"
    skipped: str | None = None
    size: int = -1
    blob: str | None = "d" * 64

    def __post_init__(self):
        if self.size < 0:
            self.size = len(self.data or b"")


def test_nothing_for_a_cell_without_files():
    assert file_bundles("s", "step", []) == []
    assert file_bundles("s", "step", [File("gone", None, kind="deleted")]) == []


def test_one_bundle_and_pictures_as_pictures():
    bundles = file_bundles(
        "sand",
        "step",
        [File("chart.png", PNG, "image/png"), File("t.csv", b"a,b\n1,2\n", "text/csv")],
    )
    assert len(bundles) == 2
    listing, picture = bundles[0][0], bundles[1][0]
    assert listing[FILES_MIME]["files"][1] == {
        "path": "t.csv", "kind": "new", "size": 8, "mime": "text/csv", "blob": "d" * 64,
        "skipped": None,
    }  # fmt: skip
    assert listing[FILES_MIME]["sandbox"] == "sand"
    assert "t.csv" in listing["text/plain"]
    assert "dagger-kernel export sand" in listing["text/plain"]
    assert "<td>1</td>" in listing["text/html"]
    assert base64.b64decode(picture["image/png"]) == PNG
    assert "chart.png" in picture["text/plain"]


def test_names_and_contents_cannot_inject_markup():
    evil = "<img src=x onerror=alert(1)>.csv"
    html = file_bundles("s", "step", [File(evil, b"<script>alert(1)</script>,b\n", "text/csv")])[0][
        0
    ]["text/html"]
    assert "<img" not in html
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_links_never_carry_a_page():
    html = file_bundles("s", "step", [File("page.html", b"<h1>x</h1>", "text/html")])[0][0]
    assert "data:application/octet-stream;base64," in html["text/html"]
    assert "data:text/html" not in html["text/html"]


def test_svg_is_not_shown_inline():
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    bundles = file_bundles("s", "step", [File("x.svg", svg, "image/svg+xml")])
    assert len(bundles) == 1
    assert "<svg" not in bundles[0][0]["text/html"]


def test_a_name_with_control_characters_stays_one_line():
    plain = file_bundles("s", "step", [File("a\nb\x1b[31m\u202egnp.exe")])[0][0]["text/plain"]
    assert "a\\nb\\x1b[31m\\u202egnp.exe" in plain


def test_a_skipped_file_says_why():
    item = File("big.bin", None, skipped="17 MiB is over the limit of 16 MiB", size=17 << 20)
    bundle = file_bundles("s", "step", [item])[0][0]
    assert "over the limit" in bundle["text/plain"]
    assert "over the limit" in bundle["text/html"]


def test_many_or_large_files_stay_small():
    many = [File(f"parts/{i:04}.txt", b"x" * 5000, "text/plain") for i in range(2000)]
    few = [File(f"t{i}.csv", b"abc,def\n" * 100_000, "text/csv") for i in range(10)]
    names = [File("n" * 200 + str(i), b"x", "text/plain") for i in range(50)]
    for files in (many, few, names):
        bundle = file_bundles("s" * 32, "t" * 32, files)[0][0]
        size = sum(len(v if isinstance(v, str) else json.dumps(v)) for v in bundle.values())
        assert size < 36_000
    assert file_bundles("s", "t", many)[0][0][FILES_MIME]["more"] == 1950


def test_previews():
    assert "<th>a</th>" in preview("text/csv", b"\xef\xbb\xbfa;b,c\n1,2\n").replace("a;b", "a")
    assert '"a": 1' in preview("application/json", b'{"a":1}').replace("&quot;", '"')
    assert preview("text/markdown", b"# Title").startswith("<pre>")
    assert preview("application/octet-stream", b"\x00\x01") == ""
    assert preview("text/csv", b"") == ""
    assert "&#8230;" in preview("text/csv", b"a\n" + b"1\n" * 100)
    assert preview("application/json", b"{broken").startswith("<pre>")
    assert "\ufffd" in preview("text/plain", b"\xff\xfe")


def test_files_come_after_the_output_of_the_cell(scripted):
    got = scripted.execute(
        "emit('stream', name='stdout', text='made')\nexport('a.csv', b'a\\n1\\n', 'text/csv')"
    )
    assert [m["msg_type"] for m in got.outputs] == ["stream", "display_data"]
    assert FILES_MIME in got.outputs[1]["content"]["data"]


def test_files_of_a_failed_cell_come_too(scripted):
    got = scripted.execute(
        "emit('error', ename='E', evalue='', traceback=[])\nend('error')\nexport('a.txt', b'x')"
    )
    assert [m["msg_type"] for m in got.outputs] == ["error", "display_data"]
    assert got.content["status"] == "error"
