"""Which stored formats the transformers backend has for which model, decided before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from niah.backends.transformers.stored import ELEMENTS, GRANULARITIES, objection
from niah.kv.config import ELEMENT_BITS, KVConfig, is_quantised
from niah.kv.memory.totals import setting_of_layer
from niah.models.shape import LayerShape, ModelShape
from niah.types import Problem


@dataclass(frozen=True)
class _Elsewhere:
    owner: str
    use: str


# formats of engines, by granularity or element type
ELSEWHERE = {
    "turboquant": _Elsewhere("vLLM on a GPU", "--backend vllm on a GPU"),
    "nvfp4": _Elsewhere("vLLM on a GPU", "--backend vllm on a GPU"),
    "block": _Elsewhere("llama.cpp", "--backend llamacpp"),
}
# quantisers of packages: module, distribution, and what installs it
LIBRARIES = {"quanto": ("optimum.quanto", "optimum-quanto"), "hqq": ("hqq", "hqq")}


def format_problems(kv: KVConfig, shape: ModelShape | None) -> list[Problem]:
    """Reasons why keys and values cannot be stored as asked; pure but for looking whether a package is there."""
    problems = [*_unknown(kv)]
    if not problems and is_quantised(kv):
        problems += _packages(kv)
        if shape is not None:
            problems += _shape(kv, shape)
    return problems


def _unknown(kv: KVConfig) -> Iterator[Problem]:
    sides = (("keys", kv.k_dtype), ("values", kv.v_dtype))
    unknown = {side: dtype for side, dtype in sides if dtype not in {*ELEMENTS, "auto"}}
    elsewhere = next((ELSEWHERE[one] for one in (kv.granularity, *unknown.values()) if one in ELSEWHERE), None)
    if elsewhere is not None:
        reason = f"no cache layer has this format, which {elsewhere.owner} has"
        yield Problem("kv", kv.name, reason, f"Use {elsewhere.use}, or int8, k8v4 or int4 here.")
        return
    if kv.granularity not in GRANULARITIES:
        yield Problem("kv", kv.name, f"no cache layer has scales of the kind {kv.granularity}", "Use int8 or int4.")
        return
    for dtype in dict.fromkeys(unknown.values()):
        which = " and ".join(side for side, one in unknown.items() if one == dtype)
        hint = f"Stored types: {', '.join(sorted(ELEMENTS))}."
        yield Problem("kv", kv.name, f"no cache layer stores {which} as {dtype}", hint)
    if kv.scales == "checkpoint" and is_quantised(kv):
        reason = "scales of a checkpoint are not read here"
        yield Problem("kv", kv.name, reason, "Use scales=unit, as engines do without them, or scales=dynamic.")
        return
    if not unknown:
        yield from _pairs(kv)


def _pairs(kv: KVConfig) -> Iterator[Problem]:
    """Element types whose scales are not those that they are stored with, asked together as the cache does."""
    elements = ["bf16" if dtype == "auto" else dtype for dtype in (kv.k_dtype, kv.v_dtype)]
    found = dict.fromkeys(reason for element in elements if (reason := objection(kv, element)))
    for reason in found:
        yield Problem("kv", kv.name, reason, "Use a preset such as int8, k8v4, int4 or kivi2.")
    if kv.granularity == "kivi" and is_quantised(kv) and not found:
        group = kv.group_size or 1
        if kv.residual < 1 or kv.residual % group:
            reason = f"keys are quantised {group} tokens at a time, and the residual {kv.residual} is no multiple of it"
            yield Problem("kv", kv.name, reason, f"Use residual={4 * group}.")


def _packages(kv: KVConfig) -> Iterator[Problem]:
    if kv.granularity not in LIBRARIES:
        return
    module, distribution = LIBRARIES[kv.granularity]
    if not _installed(module):
        hint = f"pip install 'niah-kv[{kv.granularity}]'"
        yield Problem("kv", kv.name, f"it needs the package {distribution}, which is not installed", hint)
    if kv.skip_layers:
        reason = "transformers' QuantizedCache quantises every layer"
        yield Problem("kv", kv.name, reason, f"Use int{ELEMENT_BITS[kv.k_dtype]} with skip where it exists.")


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def _shape(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if shape.is_mla:
        hint = "Use a 16-bit setting: the latent is already compressed."
        yield Problem("kv", kv.name, "the model stores a latent, not K and V to quantise", hint)
        return
    count = len(shape.layers)
    for skip in kv.skip_layers:
        if isinstance(skip, int) and not -count <= skip < count:
            yield Problem("kv", kv.name, f"there is no layer {skip}", f"The model has layers 0 to {count - 1}.")
    used = [setting_of_layer(shape, kv, i) for i in range(count)]
    stored = [
        (one, layer) for one, layer in zip(used, shape.layers, strict=True) if layer.stores_tokens and is_quantised(one)
    ]
    if not stored:
        return
    yield from _windows(kv, [layer for _, layer in stored])
    yield from _groups(kv, [layer for _, layer in stored])


def _windows(kv: KVConfig, layers: list[LayerShape]) -> Iterator[Problem]:
    if not any(layer.window for layer in layers):
        return
    if kv.granularity == "kivi":
        reason = f"keys are quantised {kv.group_size} tokens at a time, and window layers drop them one at a time"
        yield Problem("kv", kv.name, reason, f"Use {kv.name}+skip(sliding_window), k8v4 or int4.")
    elif kv.granularity in LIBRARIES:
        reason = "transformers' QuantizedCache refuses models with window layers"
        yield Problem("kv", kv.name, reason, f"Use int{ELEMENT_BITS[kv.k_dtype]} or k8v4, whose layers have windows.")


def _groups(kv: KVConfig, layers: list[LayerShape]) -> Iterator[Problem]:
    """Head sizes that groups do not divide, or whose elements do not fill bytes."""
    sides = {(kv.k_dtype, layer.k_dim) for layer in layers} if kv.granularity != "kivi" else set()
    sides |= {(kv.v_dtype, layer.v_dim) for layer in layers}
    for dtype, dim in sorted(sides):
        packed = max(1, 8 // ELEMENT_BITS.get(dtype, 8))
        grouped = kv.granularity not in ("token_head", "tensor", "none") and (packed > 1 or kv.granularity in LIBRARIES)
        group = (kv.group_size or dim) if grouped else packed
        if dim % group or group % packed:
            reason = f"a group of {group} does not divide the head size {dim}, or is no multiple of {packed}"
            yield Problem("kv", kv.name, reason, f"Use a group_size that divides {dim}.")
