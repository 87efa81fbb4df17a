"""Where things are inside a sandbox, and its environment: the same on every engine."""

from __future__ import annotations

import os

from ..runner.zygote.enter import PROXY_PORT
from ..settings import Settings

HOME = "/home/sandbox"
VENV = f"{HOME}/.venv"
RUNNER_PLACE = "/opt/dagger-kernel"
CA_PLACE = "/etc/dagger-kernel-ca.pem"
SYSTEM_CA = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")

RUNNER_NEEDS = ("ipython", "matplotlib-inline", "comm", "pip", "uv")
"""What the runner and its users need in a base besides the setting ``packages``."""


def environment(settings: Settings, *, network: str) -> dict[str, str]:
    """Return the whole environment of a sandbox: nothing of the host's but the administrator's settings."""
    env = {
        "HOME": HOME,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "PATH": f"{VENV}/bin:/usr/local/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": VENV,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONHASHSEED": "0",
        "UV_COMPILE_BYTECODE": "1",
        "UV_LINK_MODE": "copy",
        "UV_NO_CACHE": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    if index := settings.index_url or first_of("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        env |= {"UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index}
    proxy = settings.proxy or first_of("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
    if network == "proxy":
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
    if proxy and network != "none":
        env |= {"NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1"}
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            env[name] = proxy
    if ca_bundle(settings):
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE"):
            env[name] = CA_PLACE
    return env


def ca_bundle(settings: Settings) -> str:
    """Return the path of the CA bundle that reaches the sandbox; empty if the machine has none."""
    candidates = (settings.ca_bundle, first_of("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), *SYSTEM_CA)
    return next((path for path in candidates if path and os.path.isfile(path)), "")


def first_of(*names: str) -> str:
    """Return the first of these environment variables that is set, else an empty text."""
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
