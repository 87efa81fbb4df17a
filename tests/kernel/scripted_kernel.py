"""The real kernel process on a scripted session: ``python scripted_kernel.py -f CONNECTION_FILE``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from scripted_session import ScriptedSession  # noqa: E402

from dagger_kernel.kernel import app, holder  # noqa: E402

holder.SandboxSession = ScriptedSession

if __name__ == "__main__":
    app.main(sys.argv[1:])
