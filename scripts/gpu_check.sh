#!/usr/bin/env bash
# Checks every KV method on one GPU machine that has Python, torch and transformers; no network, no weights, no vLLM
# needed. Under 8 minutes. Extra arguments go to gpu_check.py: scripts/gpu_check.sh --device cpu --small
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHONPATH=. exec "${PYTHON:-python3}" scripts/gpu_check.py "$@"
