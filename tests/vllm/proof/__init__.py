"""Proofs that niah's formats store the bytes of vLLM's kernels; each module runs in a process of its own."""
