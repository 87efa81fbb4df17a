#!/bin/sh
# Resolve the exact versions that constraints.txt names, for every Python we support at once.
# No addresses, no hashes: the file says what was tested, not where it comes from.
set -eu
cd "$(dirname "$0")/.."
{
    echo "# The versions this release was tested with: pip install -c constraints.txt ."
    echo "# Made by \`make constraints\`."
    .venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 --all-extras \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml
} >constraints.txt.new
mv constraints.txt.new constraints.txt
