"""Run a notebook on plain ipykernel: ``python run_plain.py PYTHON NOTEBOOK OUT``, in its project.

A process of its own, because nbclient leaves sockets to the garbage collector.
"""

import os
import sys

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

python, source, target = sys.argv[1:]
notebook = nbformat.read(source, 4)
manager = AsyncKernelManager(kernel_name="python3")
manager.kernel_spec.argv[0] = python
with open(os.devnull, "wb") as nowhere:
    NotebookClient(notebook, km=manager, timeout=120).execute(stderr=nowhere)
nbformat.write(notebook, target)
