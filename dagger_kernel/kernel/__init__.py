"""The Jupyter kernel: protocol in, protocol out.

The kernel process holds no user state. It turns Jupyter messages into calls of
`dagger_kernel.sandbox` and what comes back into Jupyter messages::

    app.py          the process: sockets, threads, signals
    protocol.py     ipykernel's base class with its traps closed
    kernel.py       the requests of this kernel
    execution.py    one execute_request, from the input to the one reply
    output.py       ordered, paced publishing of a cell's output
    stdin.py        questions to the client that asked for the cell
    comms.py        widgets' messages between client and running cell
    holder.py       the sandbox's session, opened when first needed
    answers.py      completion, inspection, is_complete, history
    files.py        the files a cell made, as display data
    previews.py     their previews
    magics/         %sandbox and %%sandbox
"""
