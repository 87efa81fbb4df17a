"""The embedded engine's way: a warm shell, then a fork with `serve` for each step.

Takes JSON requests on the socket given as descriptor number: ``open`` (with the link's descriptor) answers
the child's id, ``poll`` its exit code or null.
"""

import json
import os
import socket
import sys

from dagger_kernel.runner.entry import serve
from dagger_kernel.runner.warmup import warm


def main(control: socket.socket) -> None:
    shell = warm()
    control.send(b"{}")
    while True:
        data, files, _, _ = socket.recv_fds(control, 65536, 1)
        if not data:
            return
        request = json.loads(data)
        if request["op"] == "open":
            child = os.fork()
            if child == 0:
                control.close()
                become_room(request, files[0], shell)
            os.close(files[0])
            control.send(json.dumps({"pid": child}).encode())
        else:
            pid, status = os.waitpid(request["pid"], os.WNOHANG)
            control.send(
                json.dumps({"exit": os.waitstatus_to_exitcode(status) if pid else None}).encode()
            )


def become_room(request, link, shell) -> None:
    try:
        os.environ.update(request["env"])
        os.chdir(request["home"])
        code = serve(
            socket.socket(fileno=link),
            request["nonce"],
            state_dir=request["state"],
            home=request["home"],
            shell=shell,
        )
        os._exit(code)
    finally:
        os._exit(99)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
