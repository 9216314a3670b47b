#!/usr/bin/env bash
# Builds the wheel, installs it with the pinned versions in a clean environment, and runs niah from there.
# With an argument: keep environment and wheel in that folder, for checks that go on (plugins from built wheels).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
if [ $# -gt 0 ]; then
  mkdir -p "$1"
  folder=$(cd "$1" && pwd)
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
unset PYTHONPATH

"${PYTHON:-python3}" -m venv --clear "$folder/venv"
pip() { "$folder/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
pip wheel --quiet --no-deps --wheel-dir "$folder" "$root"
pip install --quiet --constraint requirements/run.txt "$folder"/niah_kv-*.whl

# outside the checkout, so that nothing of it can be imported
cd "$folder"
"$folder/venv/bin/python" - "$root" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import niah

place = Path(niah.__file__).resolve()
assert Path(sys.argv[1]) not in place.parents or Path(sys.prefix) in place.parents, place
assert niah.__version__ == version("niah-kv"), (niah.__version__, version("niah-kv"))
PYTHON
"$folder/venv/bin/niah" list kv >/dev/null
"$folder/venv/bin/niah" run --backend oracle --kv bf16,int8 --lengths 512,1k --depths 3 --trials 2 --out results >run.txt
"$folder/venv/bin/niah" show results >/dev/null
"$folder/venv/bin/python" - <<'PYTHON'
import niah

rows = niah.load("results").rows
assert len(rows) == 24, len(rows)
assert {row.outcome for row in rows} == {"answered"}
print(f"wheel: niah {niah.__version__} built, installed and run: {len(rows)} cells answered")
PYTHON

# plugins of another package, from a wheel of its own, and of one that cannot be loaded
"${PYTHON:-python3}" "$root/scripts/plugin_wheel_check.py" "$folder/venv"
