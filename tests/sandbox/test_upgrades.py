"""A library upgraded between cells: what cannot be read any more is kept, told, and back with the old version."""

from __future__ import annotations

from dagger_kernel.sandbox import run_source

from .conftest import text_of

BUILD = """
import zipfile
def wheel(version, code):
    name = f"acme-{version}-py3-none-any.whl"
    info = f"acme-{version}.dist-info"
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr("acme/__init__.py", code)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: acme\\nVersion: {version}\\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/RECORD", f"acme/__init__.py,,\\n{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n")
wheel("1.0", "class Box:\\n    def __init__(self, value): self.value = value\\nVERSION = 1")
wheel("2.0", "class Crate:\\n    pass\\nVERSION = 2")
"""
INSTALL = "%pip install -q --no-index --no-deps ./acme-{}-py3-none-any.whl"


async def test_an_upgrade_that_makes_a_value_unreadable(session):
    await run_source(session, BUILD)
    await run_source(session, INSTALL.format("1.0"))
    await run_source(session, "import acme\nbox = acme.Box([5]); alias = [box]; plain = [1]")
    assert await text_of(session, "print(box.value, alias[0] is box)") == "[5] True\n"
    before = (await session.steps())[-1][0].seq
    done = await run_source(session, INSTALL.format("2.0"))
    assert str(done.result.status) == "ok", done.result.outputs

    assert await text_of(session, "print(plain, acme.VERSION)") == "[1] 2\n"
    done = await run_source(session, "plain.append(2)\nbox.value")
    (error,) = [o for o in done.result.outputs if o["output_type"] == "error"]
    assert error["ename"] == "StateLostError"
    assert "'box' (acme.Box) was not kept: loading it failed with AttributeError" in error["evalue"]
    assert {entry["name"] for entry in done.result.state_report["lost"]} == {"box", "alias"}

    await run_source(session, INSTALL.format("1.0"))
    assert await text_of(session, "print(box.value, alias[0] is box, plain)") == (
        "[5] True [1, 2]\n"
    )
    await run_source(session, INSTALL.format("2.0"))
    await session.rewind(before)
    assert await text_of(session, "print(box.value, acme.VERSION)") == "[5] 1\n"
