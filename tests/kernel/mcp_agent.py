"""An agent that works on a notebook through jupyter-mcp-server; prints what each tool gave, one JSON a line.

Run by the environment that has jupyter-mcp-server: ``mcp_agent.py URL TOKEN CODE...``. It connects to ``agent.ipynb``,
and appends and runs a cell for each code.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(url, token, *codes):
    server = StdioServerParameters(
        command=str(Path(sys.executable).parent / "jupyter-mcp-server"),
        args=["--transport", "stdio", "--jupyter-url", url, "--jupyter-token", token,
              "--start-new-code-sandbox", "false"],
        env=dict(os.environ),
    )  # fmt: skip
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        notebook = {"notebook_name": "agent", "notebook_path": "agent.ipynb"}
        await tell(session, "use_notebook", mode="connect", **notebook)
        for code in codes:
            await tell(session, "insert_execute_code_cell", cell_index=-1, cell_source=code)
        await tell(session, "read_notebook", notebook_name="agent", response_format="detailed")


async def tell(session, tool, **arguments):
    result = await session.call_tool(tool, arguments, read_timeout_seconds=120)
    texts = [getattr(item, "text", item.type) for item in result.content]
    print(json.dumps({"tool": tool, "texts": texts}), flush=True)


asyncio.run(main(*sys.argv[1:]))
