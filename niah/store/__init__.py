"""Run folders: rows, manifest, answers, and reading them back."""
