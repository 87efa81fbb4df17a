"""``sandbox:execute`` for kernels too: who lacks it can neither start, drive nor end a kernel of ours.

Jupyter asks its authorizer about ``kernels`` in general. This one stands in front of the configured one: it asks that as
ever, and for our kernels also whether the user may ``execute`` on the resource ``dagger_kernel``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth import Authorizer

from .base import RESOURCE

RESOURCES = frozenset(("kernels", "sessions"))
PACKAGE = re.compile(r"\bdagger_kernel\b")


class SandboxAuthorizer(Authorizer):
    """Asks the configured authorizer once more where a kernel of ours is concerned.

    Parameters
    ----------
    inner
        The configured one; it decides about everything.
    """

    def __init__(self, inner: Authorizer) -> None:
        super().__init__(parent=inner.parent, identity_provider=inner.identity_provider)
        self.inner = inner

    async def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        """Return whether a user may do something."""
        ask = self.inner.is_authorized
        if not await ensure_async(ask(handler, user, action, resource)):
            return False
        if resource not in RESOURCES or action == "read":
            return True
        names = await _kernel_names(handler)
        if not any(_is_ours(handler, name) for name in names):
            return True
        return bool(await ensure_async(ask(handler, user, "execute", RESOURCE)))


async def _kernel_names(handler: Any) -> list[str]:
    """Return the names of the kernels that a request starts, drives or ends."""
    manager, given, method = handler.kernel_manager, handler.path_kwargs, handler.request.method
    body = _body(handler)
    wanted = body.get("kernel") if "kernel" in body else body
    wanted = wanted if isinstance(wanted, dict) else {}
    kernels = [given["kernel_id"]] if "kernel_id" in given else []
    if isinstance(wanted.get("id"), str):
        kernels.append(wanted["id"])
    if "session_id" in given and (method == "DELETE" or "kernel" in body):
        kernels += await _kernels_of(handler, given["session_id"])
    names = [manager.get_kernel(each).kernel_name for each in kernels if each in manager]
    if "kernel_id" not in given and (method == "POST" or "kernel" in body):
        # One that is not named is the default one.
        name = (
            wanted.get("name") if "kernel" in body or handler.auth_resource == "kernels" else None
        )
        names.append(name if isinstance(name, str) and name else manager.default_kernel_name)
    return names


def _is_ours(handler: Any, name: str) -> bool:
    """Whether a kernelspec runs our kernel, whatever the spec is called."""
    try:
        spec = handler.kernel_spec_manager.get_kernel_spec(name)
    except Exception:
        return False  # there is none, which Jupyter says
    return any(PACKAGE.search(word) for word in spec.argv)


async def _kernels_of(handler: Any, session_id: str) -> list[str]:
    try:
        session = await ensure_async(handler.session_manager.get_session(session_id=session_id))
    except Exception:
        return []  # there is none, which Jupyter says
    return [session["kernel"]["id"]]


def _body(handler: Any) -> dict[str, Any]:
    try:
        body = json.loads(handler.request.body or b"{}")
    except ValueError:
        return {}  # which Jupyter says
    return body if isinstance(body, dict) else {}
