"""Loads a causal language model: device, dtype, attention, and one forward call for all transformers releases."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from niah.backends.transformers.attention import register
from niah.backends.transformers.positions import position_problem
from niah.engines.checkpoint.yarn import yarn
from niah.errors import BackendUnavailable, ConfigError

if TYPE_CHECKING:
    from niah.backends.transformers.options import TransformersOptions
    from niah.engines.base import ModelInfo

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def pick_device(wanted: str) -> torch.device:
    """``auto`` is CUDA, then MPS, then the CPU.

    Raises:
        BackendUnavailable: the named device is not there.
    """
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as err:
        raise BackendUnavailable(f"the device {wanted!r} cannot be used: {str(err).splitlines()[0]}") from err
    return device


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 in hardware: elsewhere bf16 runs at a sixth of the speed of fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        flags = ("_is_avx512_bf16_supported", "_is_amx_tile_supported", "_is_arm_bf16_supported")
        return any(bool(getattr(torch.cpu, flag, bool)()) for flag in flags)
    return False


def pick_dtype(wanted: str, device: torch.device) -> torch.dtype:
    if wanted != "auto":
        return DTYPES[wanted]
    if has_bf16(device):
        return torch.bfloat16
    return torch.float32 if device.type == "cpu" else torch.float16


@dataclass
class LoadedModel:
    """A model ready to run; differences between models and transformers releases are resolved.

    Attributes:
        cache_argument: the forward argument that takes the cache (renamed in transformers 5.24).
        layer_types: kinds of attention that need a mask each; empty when one mask serves all layers.
        window: the window of all layers where there is one mask; None for full attention.
    """

    model: Any
    device: torch.device
    dtype: torch.dtype
    attention: str
    cache_argument: str
    layer_types: dict[str, int | None]
    window: int | None
    ends: frozenset[int]

    def step(
        self,
        ids: list[int],
        positions: list[int],
        cache: Any,
        mask: Callable[[int | None], torch.Tensor] | None = None,
        keep: list[int] | None = None,
    ) -> torch.Tensor:
        """One forward pass over ``ids [n]``; logits ``[len(keep), vocab]``, of the last token when ``keep`` is None."""
        arguments: dict[str, Any] = {self.cache_argument: cache, "use_cache": True}
        if mask is not None:
            arguments["attention_mask"] = self._masks(mask)
        arguments["logits_to_keep"] = 1 if keep is None else torch.tensor(keep, device=self.device)
        out = self.model(
            input_ids=torch.tensor([ids], device=self.device),
            position_ids=torch.tensor([positions], device=self.device),
            **arguments,
        )
        logits: torch.Tensor = out.logits[0]
        return logits

    def _masks(self, mask: Callable[[int | None], torch.Tensor]) -> torch.Tensor | dict[str, torch.Tensor]:
        if self.layer_types:
            return {kind: self._shaped(mask(window)) for kind, window in self.layer_types.items()}
        return self._shaped(mask(self.window))

    def _shaped(self, mask: torch.Tensor) -> torch.Tensor:
        mask = mask[None, None]
        if self.attention != "eager":
            return mask
        # eager attention adds its mask to the scores
        lowest = torch.finfo(self.dtype).min
        return torch.zeros(mask.shape, dtype=self.dtype, device=mask.device).masked_fill_(~mask, lowest)


def load_model(options: TransformersOptions, info: ModelInfo) -> LoadedModel:
    """Load weights on the chosen device.

    Raises:
        BackendUnavailable: the device is missing.
        OSError, ValueError: the weights cannot be read.
    """
    from transformers.utils import logging

    torch.set_num_threads(options.thread_count())
    logging.disable_progress_bar()
    device = pick_device(options.device)
    dtype = pick_dtype(options.dtype, device)
    name = register()
    attention = {"auto": name, "sdpa": name, "eager": "eager"}[options.attn]
    arguments = {"dtype": dtype, "trust_remote_code": options.trust_remote_code}
    if options.revision:
        arguments["revision"] = options.revision
    if options.yarn_factor is not None:
        arguments["config"] = stretched_config(options, info, options.yarn_factor)
    try:
        model = _from_pretrained(info.source, attention, arguments)
    except (ValueError, KeyError) as err:
        if options.attn != "auto" or not _has_no(name, err):
            raise
        attention = "eager"
        model = _from_pretrained(info.source, attention, arguments)
    reason = position_problem(model.config.get_text_config(), type(model))
    if reason:
        raise BackendUnavailable(_cannot(info.name, reason))
    return ready(model.to(device).eval(), attention)


def stretched_config(options: TransformersOptions, info: ModelInfo, factor: float) -> Any:
    """The model's config with its positions stretched by YaRN.

    Raises:
        ConfigError: a model whose positions cannot be stretched.
    """
    from transformers import AutoConfig

    extra = {"revision": options.revision} if options.revision else {}
    config = AutoConfig.from_pretrained(info.source, trust_remote_code=options.trust_remote_code, **extra)
    yarn(config, factor, info.source)
    return config


def _from_pretrained(source: str, attention: str, arguments: dict[str, Any]) -> Any:
    """Load the model and require that all its weights are in its files.

    Raises:
        BackendUnavailable: some are missing, which transformers would initialize at random.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()  # its report of missing weights is a long table
    try:
        model, told = AutoModelForCausalLM.from_pretrained(
            source, attn_implementation=attention, output_loading_info=True, **arguments
        )
    finally:
        logging.set_verbosity(level)
    missing = sorted(told.get("missing_keys") or ())
    if missing:
        raise BackendUnavailable(
            f"the weights in {source!r} lack {len(missing)} of the tensors that its config asks for, such as "
            f"{missing[0]}: they would be random. Is it the config of another model?"
        )
    return model


def _has_no(attention: str, err: Exception) -> bool:
    """Whether a model says that it has no such attention: soft caps, learned sinks, or a table of its own classes."""
    return "scaled_dot_product_attention" in str(err) or (isinstance(err, KeyError) and err.args == (attention,))


def check_positions(source: str, options: TransformersOptions) -> None:
    """Refuse a model that does not accept explicit token positions, before its weights are loaded.

    Raises:
        ConfigError: it is one; what to use is in the message.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

    extra = {"revision": options.revision} if options.revision and not Path(source).is_dir() else {}
    config = AutoConfig.from_pretrained(source, trust_remote_code=options.trust_remote_code, **extra)
    kind = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    reason = position_problem(config.get_text_config(), kind if isinstance(kind, type) else None)
    if reason:
        raise ConfigError(_cannot(source, reason))


def _cannot(name: str, reason: str) -> str:
    return (
        f"the model {name!r} cannot be run by this backend: {reason}, so that questions behind one context would be "
        "answered wrongly. Use --backend vllm or llamacpp, if the engine supports it."
    )


def ready(model: Any, attention: str) -> LoadedModel:
    """``LoadedModel`` of a model that is on its device already."""
    config = model.config.get_text_config()
    parameter = next(model.parameters())
    return LoadedModel(
        model=model,
        device=parameter.device,
        dtype=parameter.dtype,
        attention=attention,
        cache_argument=_cache_argument(model),
        layer_types=_layer_types(config),
        window=_uniform_window(config),
        ends=_end_tokens(model),
    )


def _cache_argument(model: Any) -> str:
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _layer_types(config: Any) -> dict[str, int | None]:
    kinds = list(dict.fromkeys(getattr(config, "layer_types", None) or []))
    if len(kinds) < 2:
        return {}
    window = getattr(config, "sliding_window", None)
    return {kind: window if "sliding" in kind else None for kind in kinds}


def _uniform_window(config: Any) -> int | None:
    kinds = set(getattr(config, "layer_types", None) or [])
    if kinds == {"full_attention"} or getattr(config, "use_sliding_window", True) is False:
        return None
    window: int | None = getattr(config, "sliding_window", None)
    return window


def _end_tokens(model: Any) -> frozenset[int]:
    ends: set[int] = set()
    for config in (model.generation_config, model.config.get_text_config()):
        token = getattr(config, "eos_token_id", None)
        ends |= set(token) if isinstance(token, (list, tuple)) else {token} if token is not None else set()
    return frozenset(ends)
