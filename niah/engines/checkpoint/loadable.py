"""Checks before a run whether transformers can load a model as a causal language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from niah.errors import ConfigError
from niah.models.config_context import rope_sections

# packages that read each kind of quantized weights; transformers itself checks whether they are installed
_PACKAGES = {
    "gptq": "optimum gptqmodel",
    "awq": "gptqmodel",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "auto-round": "auto-round",
    "aqlm": "aqlm",
    "quanto": "optimum-quanto",
    "quark": "amd-quark",
    "eetq": "eetq",
    "hqq": "hqq",
    "torchao": "torchao",
    "vptq": "vptq",
    "spqr": "spqr_quant",
    "fbgemm_fp8": "fbgemm-gpu",
    "higgs": "flute-kernel",
}
_OTHER_INPUTS = ("vision_config", "audio_config", "vision_tower", "mm_vision_tower", "image_token_id", "speech_config")
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_CAUSAL = "AutoModelForCausalLM"


def check_loadable(source: str, model: str, *, trust_remote_code: bool, revision: str | None) -> None:
    """Refuse what ``load_model`` would fail on after the run folder is made.

    Args:
        source: folder or hub id, whose config could be read already.
        model: as the user named it.

    Raises:
        ConfigError: no causal language model, code of its own that is not trusted, or a package is missing.
    """
    from transformers import AutoConfig

    if Path(source).is_dir():
        _check_names(Path(source), model)
    extra: dict[str, Any] = {} if Path(source).is_dir() or revision is None else {"revision": revision}
    config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code, **extra)
    _check_class(config, model, trust_remote_code=trust_remote_code)
    if not trust_remote_code:
        _check_rope(config, model)
    asked = getattr(config, "quantization_config", None)
    if asked is not None:
        _check_quantized(asked, model)


def _check_names(folder: Path, model: str) -> None:
    """Check for weights under file names that transformers does not find."""
    if any((folder / name).is_file() for name in _WEIGHTS):
        return
    found = sorted(path.name for path in folder.glob("*.safetensors"))
    shown = ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
    raise ConfigError(
        f"the model {model!r} has no model.safetensors and no model.safetensors.index.json, by which transformers "
        f"finds its weights{f' ({shown})' if shown else ''}. Download the index too, or use --backend vllm."
    )


def _check_class(config: Any, model: str, *, trust_remote_code: bool) -> None:
    from transformers import AutoModelForCausalLM

    if type(config) in AutoModelForCausalLM._model_mapping:  # noqa: SLF001 - the library has no other way to ask
        return
    if _CAUSAL in (getattr(config, "auto_map", None) or {}):
        if trust_remote_code:
            return
        raise ConfigError(needs_own_code(model))
    kind = repr(getattr(config, "model_type", "") or type(config).__name__)
    if any(getattr(config, name, None) is not None for name in _OTHER_INPUTS):
        raise ConfigError(
            f"the model {model!r} ({kind}) is multimodal, and transformers has no text-only class for it. Use its text "
            "model alone where its makers publish one, --backend llamacpp with a GGUF file of it, or a server."
        )
    if getattr(config, "is_encoder_decoder", False):
        raise ConfigError(
            f"the model {model!r} ({kind}) has an encoder and a decoder, and a decoder-only language model is needed "
            "here. Name another model."
        )
    raise ConfigError(
        f"the model {model!r} ({kind}) is no causal language model that transformers knows. Name another model, or a "
        "newer transformers."
    )


def _check_rope(config: Any, model: str) -> None:
    """Check for kinds of rotary embedding that transformers does not implement."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    known = {"default", "mrope", *ROPE_INIT_FUNCTIONS}
    for section in rope_sections(config.get_text_config().to_dict()):
        kind = str(section.get("rope_type") or section.get("type") or "default")
        if kind not in known:
            raise ConfigError(
                f"the model {model!r} asks for rotary positions of the kind {kind!r}, which this transformers does not "
                f"have (it has {', '.join(sorted(known))}). Correct rope_scaling in its config.json, or use --backend "
                "vllm or llamacpp."
            )


def needs_own_code(model: str) -> str:
    """The message for a model that transformers does not implement."""
    return (
        f"the model {model!r} brings Python code of its own, without which it cannot be loaded. Read that code, and "
        "allow it by --set backend.trust_remote_code=true."
    )


def _check_quantized(asked: Any, model: str) -> None:
    from transformers.quantizers import AutoHfQuantizer
    from transformers.utils import logging

    settings = asked if isinstance(asked, dict) else asked.to_dict()
    kind = _kind(settings)
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # what the library would rather have is told when the weights are loaded
    try:
        AutoHfQuantizer.from_config(dict(settings), pre_quantized=True).validate_environment(device_map=None)
    except Exception as err:
        raise ConfigError(_unreadable(kind, err, model)) from err
    finally:
        logging.set_verbosity(level)


def _kind(settings: dict[str, Any]) -> str:
    if settings.get("load_in_4bit") or settings.get("load_in_8bit"):
        return "bitsandbytes"
    return str(settings.get("quant_method") or "a method that its config does not name")


def _unreadable(kind: str, err: Exception, model: str) -> str:
    other = "use --backend vllm, which reads several kinds itself, or name the model without quantized weights"
    packages = _PACKAGES.get(kind)
    if isinstance(err, ImportError) and packages:
        plural = "packages" if " " in packages else "package"
        listed = " and ".join(repr(name) for name in packages.split())
        return (
            f"the weights of {model!r} are quantized ({kind}), which transformers reads only with the {plural} "
            f"{listed}: pip install {packages}; or {other}."
        )
    reason = (str(err).strip() or type(err).__name__).splitlines()[0].partition(" - supported")[0].rstrip(".")[:200]
    return f"the weights of {model!r} are quantized ({kind}), which cannot be read here: {reason}; {other}."
