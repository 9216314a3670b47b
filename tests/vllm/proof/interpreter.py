"""Switches Triton's interpreter on for vLLM's kernels, makes the proofs' inputs, and compares what both sides store.

A module of this folder calls ``switch_on`` before anything imports Triton or vLLM, so it runs in a process of its own
(``python -m tests.vllm.proof.NAME``) and prints its rows as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Literal, NamedTuple, TypedDict

import torch

from niah.models.embedded import embedded_folder

TOKENS, HEADS = 6, 2
# head sizes that models have; a format's module leaves out what its kernel does not take
HEAD_DIMS = (32, 64, 80, 96, 128, 256)
# embedded models whose keys and values are stored too, by the size of their heads
MODELS = {64: "smollm2", 256: "gemma3-270m"}
PROMPT = "The cellar key hangs behind the third clock; nobody has moved it since March."


class Row(TypedDict):
    """One comparison of what a kernel of vLLM stores or computes with what niah does.

    Attributes:
        format: vLLM's word for the cache's type.
        head_dim: elements of a head.
        inputs: name of the keys and values.
        what: what was compared.
        equal: whether all bits are equal.
        largest: largest absolute difference.
        bound: what ``largest`` may be; 0 where bits must be equal.
        cause: why there is a difference, or what the interpreter does unlike a card; empty when nothing is.
    """

    format: str
    head_dim: int
    inputs: str
    what: Literal["codes", "scales", "decode", "attention"]
    equal: bool
    largest: float
    bound: float
    cause: str


class Inputs(NamedTuple):
    """Keys and values ``[tokens, heads, head_dim]`` under a name."""

    name: str
    keys: torch.Tensor
    values: torch.Tensor


def switch_on() -> None:
    """Make Triton interpret its kernels, and vLLM take a CPU for a device that Triton runs on."""
    os.environ |= {"TRITON_INTERPRET": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    torch.set_num_threads(1)
    backends = importlib.import_module("triton.backends")
    backends.backends["cpu"] = SimpleNamespace(driver=SimpleNamespace(is_active=lambda: True))


def made_inputs(head_dim: int, tokens: int = TOKENS, heads: int = HEADS) -> list[Inputs]:
    """Inputs made of random numbers, and what lies at the edges of a format; all fp32 but those that end in bf16."""
    generator = torch.Generator().manual_seed(head_dim)

    def normal() -> torch.Tensor:
        return torch.randn(tokens, heads, head_dim, generator=generator)

    def outliers() -> torch.Tensor:
        rare = torch.rand(tokens, heads, head_dim, generator=generator) < 0.02
        return torch.where(rare, normal() * 50, normal())

    def zeros() -> torch.Tensor:
        states = normal()
        states[::2] = 0
        return states

    def one_channel() -> torch.Tensor:
        states = normal()
        states[..., head_dim // 3] *= 1000
        return states

    def halves() -> torch.Tensor:
        """Multiples of a half up to 127, which becomes the absolute maximum of each row."""
        states = torch.randint(-253, 254, (tokens, heads, head_dim), generator=generator) / 2
        states[..., 0] = 127
        return states

    makers: dict[str, Callable[[], torch.Tensor]] = {
        "normal": normal,
        "outliers": outliers,
        "zero rows": zeros,
        "subnormal": lambda: normal() * 1e-40,
        "tiny": lambda: normal() * 1e-5,
        "one huge channel": one_channel,
        "halves": halves,
        "positive": lambda: normal().abs() + 1,
        "normal, bf16": lambda: normal().bfloat16(),
        "outliers, bf16": lambda: outliers().bfloat16(),
        "one huge channel, bf16": lambda: one_channel().bfloat16(),
    }
    return [Inputs(name, make(), make()) for name, make in makers.items()]


def all_inputs(head_dim: int) -> list[Inputs]:
    """``made_inputs``, and an embedded model's keys and values where its heads have that size."""
    real = [model_inputs(MODELS[head_dim])] if head_dim in MODELS else []
    return [*made_inputs(head_dim), *real]


@cache
def model_inputs(alias: str) -> Inputs:
    """Keys and values of an embedded model's last layer for the first tokens of ``PROMPT``, in bf16."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = embedded_folder(alias)
    tokens = AutoTokenizer.from_pretrained(folder)(PROMPT, return_tensors="pt")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        layer = model(**tokens, use_cache=True).past_key_values.layers[-1]
    keys, values = (states[0].transpose(0, 1)[:TOKENS].bfloat16().contiguous() for states in (layer.keys, layer.values))
    return Inputs(f"{alias}, bf16", keys, values)


def by_head(states: torch.Tensor) -> torch.Tensor:
    """``[tokens, heads, n]`` as niah's codecs take it: ``[1, heads, tokens, n]``."""
    return states.transpose(0, 1)[None]


def by_token(states: torch.Tensor) -> torch.Tensor:
    """The inverse of ``by_head``."""
    return states[0].transpose(0, 1)


def compare(
    row: tuple[str, int, str, Literal["codes", "scales", "decode", "attention"]],
    ours: torch.Tensor,
    theirs: torch.Tensor,
    *,
    bound: float = 0.0,
    cause: str = "",
) -> Row:
    """A row from two tensors of the same shape and type.

    Args:
        row: format, head_dim, name of the inputs, and what is compared.
        bound: largest absolute difference allowed; 0 where bits must be equal.
        cause: why there may be a difference; needed with a bound.

    Raises:
        ValueError: the tensors differ in shape or type, or a bound has no cause.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        raise ValueError(f"{row}: {ours.dtype} {tuple(ours.shape)} and {theirs.dtype} {tuple(theirs.shape)}")
    if bound and not cause:
        raise ValueError(f"{row}: a bound needs a cause")
    equal = torch.equal(ours.contiguous().view(torch.uint8), theirs.contiguous().view(torch.uint8))
    difference = (ours.double() - theirs.double()).abs().nan_to_num(float("inf"))
    largest = float(difference.max()) if ours.numel() else 0.0
    return Row(
        format=row[0],
        head_dim=row[1],
        inputs=row[2],
        what=row[3],
        equal=equal,
        largest=largest,
        bound=bound,
        cause=cause,
    )


def plain_attention(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float) -> torch.Tensor:
    """Causal softmax attention in float64; all ``[tokens, heads, head_dim]``, the queries' heads in whole groups."""
    groups = query.shape[1] // keys.shape[1]
    keys, values = (states.double().repeat_interleave(groups, dim=1) for states in (keys, values))
    scores = torch.einsum("qhd,khd->hqk", query.double(), keys) * scale
    ahead = len(keys) - len(query) + 1
    hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(ahead)
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, -torch.inf).softmax(-1), values).float()


def show(rows: list[Row]) -> None:
    """Print the rows as one line of JSON, the last of what a module prints."""
    print(json.dumps(rows))
