"""``ModelInfo`` of a model by alias, folder or hub id: tokenizer, template and shape, without loading weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from niah.engines.base import ModelInfo
from niah.engines.checkpoint.files import check_file, check_folder
from niah.engines.checkpoint.gguf import converted_folder, is_alias
from niah.engines.checkpoint.loadable import needs_own_code
from niah.engines.checkpoint.template import read_template
from niah.errors import ConfigError, near
from niah.models.embedded import EMBEDDED, folder_revision
from niah.models.hub import require_cached_or_reachable
from niah.models.shape import ModelShape
from niah.paths import as_path
from niah.prompts.tokens import FastTokenizer


def describe_model(
    model: str,
    *,
    template: str,
    trust_remote_code: bool,
    revision: str | None,
    needs_weights: bool = True,
    date: str | None = None,
    as_engine: bool = False,
) -> ModelInfo:
    """What a plan needs to know of a model.

    Args:
        template: ``auto`` (chat where the model has a template), ``chat`` or ``completion``.
        revision: of a hub model; local folders have a digest instead.
        needs_weights: ``False`` for a folder with a config and a tokenizer alone.
        date, as_engine: see ``read_template``.

    Raises:
        ConfigError: no such model, files that cannot be used, no fast tokenizer, or no such template.
    """
    source = _locate(model, revision, needs_weights=needs_weights)
    from transformers import AutoConfig, AutoTokenizer

    local = Path(source).is_dir()
    extra: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if revision and not local:
        extra["revision"] = revision
    try:
        config = AutoConfig.from_pretrained(source, **extra)
        tokenizer = AutoTokenizer.from_pretrained(source, **extra)
    except Exception as err:  # files of unknown models fail in many ways
        raise _unreadable(model, err, local=local) from err
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(
            f"the tokenizer of {model!r} is not a fast one: exact lengths need offsets. Convert it first."
        )
    around = read_template(template, tokenizer, model, day=date, as_engine=as_engine)
    shape = ModelShape.from_config(config.to_dict(), name=model)
    found = folder_revision(Path(source)) if local else str(getattr(config, "_commit_hash", "") or revision)
    return ModelInfo(
        name=model,
        source=source,
        revision=found,
        tokenizer=FastTokenizer(tokenizer.backend_tokenizer, name=model, as_library=True),
        template=around,
        shape=shape,
        context_tokens=shape.context_tokens,
        assistant_prefill=around.lead,
        reference_kv=shape.native_dtype if shape.native_dtype in ("bf16", "fp16") else "bf16",
    )


def _locate(model: str, revision: str | None, *, needs_weights: bool) -> str:
    """A folder or hub id for a model name; embedded models are converted at first use."""
    if is_alias(model):
        return str(converted_folder(model))
    path = as_path(model)
    if path.is_dir():
        check_folder(path, model, needs_weights=needs_weights)
        return str(path)
    if path.is_file():
        check_file(path, model)
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ConfigError(f"the model folder {model!r} does not exist.")
    if "/" not in model:
        raise ConfigError(
            f"no model named {model!r}.{near(model, EMBEDDED)} A folder or a hub id such as org/name works too."
        )
    require_cached_or_reachable(model, "config.json", revision)
    return model


def _unreadable(model: str, err: Exception, *, local: bool) -> ConfigError:
    if "trust_remote_code" in str(err):
        return ConfigError(needs_own_code(model))
    # a first line that ends in a colon only introduces the message
    lines = [line.strip() for line in str(err).splitlines() if line.strip()] or [type(err).__name__]
    reason = " ".join(lines[: 1 + lines[0].endswith(":")]).rstrip(".")
    where = "its folder" if local else "the hub"
    return ConfigError(
        f"cannot read the model {model!r} from {where}: {reason[:300]}. Look at its config.json and tokenizer files"
        + ("." if local else ", or whether it is private (HF_TOKEN).")
    )
