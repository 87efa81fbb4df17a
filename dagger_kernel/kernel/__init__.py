"""The Jupyter kernel: protocol in, protocol out.

The kernel process holds no user state. It turns Jupyter messages into calls of
`dagger_kernel.sandbox` and what comes back into Jupyter messages::

    app.py           the process: sockets, threads, signals
    protocol.py      ipykernel's base class with its traps closed
    kernel.py        the requests of this kernel
    request.py       one execute_request, checked
    execution.py     one cell, from the request to the one reply
    frames.py        a running cell's frames as message contents; not trusted
    output.py        ordered, paced publishing of a cell's output, progress that goes away
    pacing.py        how fast a server lets a kernel publish
    stdin.py         questions to the client that asked for the cell
    comms.py         widgets' messages between client and running cell
    holder.py        the sandbox's session, opened when first needed
    answers.py       completion, inspection, is_complete
    completeness.py  is_complete without a sandbox
    history.py       earlier inputs, from the log
    usage.py         what kernel and sandbox use
    language.py      what clients are told of Python and Bash
    files.py         the files a cell made, as display data
    previews.py      their previews
    text.py          what can be sent as JSON, and shown on one line
    magics/          %sandbox and %%sandbox
"""
