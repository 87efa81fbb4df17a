"""What runs inside a container besides the runner: list, put files in, pack, unpack and mirror states.

Shipped beside the runner as ``dagger_kernel_inside`` and started as root by the base's own interpreter
(``python -I -S``), which the sandbox's user cannot change; standard library only. It never follows a link that the
sandbox made.

    list PATH [--recursive]      a JSON line on stdout
    put SOCKET NONCE             files of an upload, from the link
    unpack SOCKET NONCE          a stored layer difference, from the link
    mount SOCKET NONCE           a skill's files, from the link
    pack OLD OUT MAX_BYTES       this root's difference to another, as an archive
    compile RUNNER               the runner and the standard library to bytecode
    mirror OTHER                 make this root's parts equal to another's
"""
