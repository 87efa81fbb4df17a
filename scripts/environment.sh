# Sourced by the Makefile's recipes: what pip and uv were told about index, proxy and CA bundle
# becomes a setting of dagger_kernel, so that the base and `uv add` in a cell use the same.
: "${DAGGER_KERNEL_INDEX_URL:=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-${PIP_INDEX_URL:-}}}}"
if [ -z "$DAGGER_KERNEL_INDEX_URL" ]; then
    DAGGER_KERNEL_INDEX_URL=$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)
fi
: "${DAGGER_KERNEL_PROXY:=${HTTPS_PROXY:-${https_proxy:-${HTTP_PROXY:-${http_proxy:-}}}}}"
: "${DAGGER_KERNEL_CA_BUNDLE:=${SSL_CERT_FILE:-${PIP_CERT:-${REQUESTS_CA_BUNDLE:-}}}}"
export DAGGER_KERNEL_INDEX_URL DAGGER_KERNEL_PROXY DAGGER_KERNEL_CA_BUNDLE
