"""Run a notebook: ``python run_notebook.py KERNEL SOURCE TARGET [PYTHON]``.

A process of its own, because nbclient leaves sockets to the garbage collector. With PYTHON, the kernel
is started with that interpreter.
"""

import os
import sys

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

kernel, source, target, *python = sys.argv[1:]
notebook = nbformat.read(source, 4)
manager = AsyncKernelManager(kernel_name=kernel)
if python:
    manager.kernel_spec.argv[0] = python[0]
with open(os.devnull, "wb") as nowhere:
    NotebookClient(notebook, km=manager, timeout=120, allow_errors=True).execute(stderr=nowhere)
nbformat.write(notebook, target)
