#!/usr/bin/env bash
# Follow the tutorial as a stranger would: a clean clone, a new virtual environment, an empty cache. Prints the seconds of
# each command, what differs from the pages, and the time of the whole.
set -euo pipefail
project=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
SECONDS=0
git clone -q "$project" "$place/patchstack"
cd "$place/patchstack"
"${PYTHON:-python3}" -m venv .venv
.venv/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt --editable '.[validate]' \
  ghstack==0.18.0 graphql-core
# ghstack's fake of GitHub is reached through the helpers of the tests, which import pytest.
.venv/bin/python -m pip --disable-pip-version-check install --quiet pytest
echo "$SECONDS s: installed"
env -u PATCHSTACK_CACHE .venv/bin/python tests/support/tutorial.py
echo "$SECONDS s from the clone to a stack that is proved and submitted"
