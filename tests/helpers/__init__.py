"""What several tests share: made rows, small models and tokenizers, a browser, the command."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
