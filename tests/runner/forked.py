"""The embedded engine's way: a warm shell, a fork, `serve`."""

import argparse
import os
import socket
import sys

from dagger_kernel.runner.entry import serve
from dagger_kernel.runner.shell import warm

parser = argparse.ArgumentParser()
for name in ("--fd", "--nonce", "--state-dir", "--home", "--preload"):
    parser.add_argument(name, default="")
options = parser.parse_args()
shell = warm(options.preload.split())
child = os.fork()
if child == 0:
    link = socket.socket(fileno=int(options.fd))
    os._exit(
        serve(link, options.nonce, state_dir=options.state_dir, home=options.home, shell=shell)
    )
os.close(int(options.fd))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
