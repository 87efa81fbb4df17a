#!/bin/sh
# Make .venv with dagger_kernel in it, or do nothing when it is up to date.
#
# usage: scripts/setup.sh [EXTRA...]      (extras of pyproject.toml: test, dev, ...)
#
# PYTHON names the interpreter to use. Everything that pip honours (PIP_INDEX_URL, PIP_CERT,
# HTTPS_PROXY, pip.conf ...) is honoured, because pip does the work.
set -eu
cd "$(dirname "$0")/.."
venv=.venv

say() { printf '%s\n' "$*" >&2; }

fail() {
    say ""
    say "make: $1"
    shift
    for line in "$@"; do say "      $line"; done
    exit 1
}

# --- 1. a Python that is new enough -------------------------------------------------------------

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.12 python3.13 python3.11 python3.14 python}; do
        if new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

python=$(find_python)
if [ -z "$python" ]; then
    found=$(${PYTHON:-python3} --version 2>&1 || true)
    fail "Python 3.11 or newer was not found (${PYTHON:-python3}: ${found:-nothing})." \
        "Install it with your package manager (Debian, Ubuntu: apt install python3 python3-venv)," \
        "or name one: make PYTHON=/path/to/python3.12 ..."
fi

# --- 2. is anything to do? ----------------------------------------------------------------------

key=$( { "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; pwd; printf '%s\n' "$@"
    cat pyproject.toml constraints.txt; find kernelspec -type f -exec cat {} +; } |
    "$python" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest()[:16])')
stamp="$venv/.stamp-${*:+$(printf '%s' "$*" | tr ' ' '-')-}$key"
[ -e "$stamp" ] && exit 0

if [ -e "$venv" ] && [ ! -w "$venv" ]; then
    fail "$(pwd)/$venv cannot be written: it belongs to $(stat -c %U "$venv")." \
        "Remove it (rm -rf $venv), or work in a clone of your own."
fi
if [ ! -w . ]; then
    fail "$(pwd) cannot be written by $(id -un)." "Clone the project into a directory of your own."
fi

# --- 3. the environment -------------------------------------------------------------------------

if ! new_enough "$venv/bin/python"; then
    rm -rf "$venv"
    say "Creating $venv with $("$python" --version) ..."
    if ! "$python" -c 'import venv' 2>/dev/null; then
        fail "this Python has no venv module." \
            "Install it (Debian, Ubuntu: apt install python3-venv) and run make again."
    fi
    # Debian's python3 without python3-venv has no ensurepip: then the pip outside installs into it.
    if ! "$python" -c 'import ensurepip' 2>/dev/null || ! "$python" -m venv "$venv" 2>/dev/null; then
        rm -rf "$venv"
        "$python" -m venv --without-pip "$venv" || fail "a virtual environment could not be made." \
            "The lines above say why. Debian, Ubuntu: apt install python3-venv"
    fi
fi

if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    pip() { "$venv/bin/python" -m pip "$@"; }
elif "$python" -m pip --python "$venv/bin/python" --version >/dev/null 2>&1; then
    pip() { "$python" -m pip --python "$venv/bin/python" "$@"; }
else
    fail "pip was not found." \
        "Install it (Debian, Ubuntu: apt install python3-pip python3-venv) and run make again."
fi

# --- 4. the packages ----------------------------------------------------------------------------

# Neither the demo nor the tests' installation needs the JupyterLab panel, whose build takes minutes where
# Node is; the browser tests build it themselves.
export SKIP_JUPYTER_BUILDER="${SKIP_JUPYTER_BUILDER-1}"

extras=$(printf '%s' "$*" | tr ' ' ',')
say "Installing dagger_kernel${extras:+ with $extras} into $venv (a minute or two the first time) ..."
if ! pip install --quiet --disable-pip-version-check --constraint constraints.txt \
    --editable ".${extras:+[$extras]}"; then
    fail "the packages could not be installed; pip's lines above say why." \
        "No package index within reach? pip takes a mirror from PIP_INDEX_URL, a proxy from" \
        "HTTPS_PROXY and a CA bundle from PIP_CERT. No space? df -h . ; then run make again:" \
        "what was downloaded is kept."
fi
rm -f "$venv"/.stamp-"${*:+$(printf '%s' "$*" | tr ' ' '-')-}"????????????????
touch "$stamp"
