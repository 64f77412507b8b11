#!/bin/sh
# Renews requirements.txt and requirements-dev.txt from the .in files: lock.sh PYTHON [pip-compile's arguments, say --upgrade].
# The hashes of every file of a release are listed, so one lock serves x86_64 and aarch64, Python 3.11 to 3.13.
set -eu
python=$1
shift
tools=build/lock-tools
[ -x "$tools/bin/pip-compile" ] || { "$python" -m venv "$tools" && "$tools/bin/python" -m pip install --quiet pip-tools; }
for name in requirements requirements-dev; do
    "$tools/bin/pip-compile" --quiet --generate-hashes --strip-extras --no-header --annotation-style=line \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
        "$@" --output-file="$name.txt" "$name.in"
done
if grep -n -E '://|^-|file:' requirements.txt requirements-dev.txt; then
    echo "A lock file names a host, a path or an option; see above." >&2
    exit 1
fi
