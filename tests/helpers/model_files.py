"""Model folders and GGUF headers without weights: a config, a small tokenizer, and what stands around a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Rust
from tokenizers import pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import LlamaConfig, PreTrainedTokenizerFast

from tests.helpers.small_tokenizers import RUST, gemma_rust, gpt2_rust

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# as Llama 2 and Mistral have it
INSTRUCT = "{{ bos_token }}{% for m in messages %}[INST] {{ m['content'] }} [/INST]{% endfor %}"


def metaspace_rust(scheme: str) -> Rust:
    """SentencePiece as ``tokenizers`` has it today: ▁ from a pre-tokenizer, at the first or at every piece."""
    rust = gemma_rust()
    rust.normalizer = None
    rust.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    return rust


def spaced_rust() -> Rust:
    """Byte-level BPE that puts a space before every piece of text."""
    rust = gpt2_rust()
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return rust


KINDS: dict[str, Any] = {
    **RUST,
    "metaspace-first": lambda: metaspace_rust("first"),
    "metaspace-always": lambda: metaspace_rust("always"),
    "byte-level-spaced": spaced_rust,
}


def begun(rust: Rust, begins: str = "", ends: str = "") -> Rust:
    """The tokenizer with special tokens before and after every text."""
    single = " ".join(part for part in (begins, "$A", ends) if part)
    known = [(token, rust.token_to_id(token)) for token in (begins, ends) if token]
    rust.post_processor = TemplateProcessing(single=single, special_tokens=known)
    return rust


def library(rust: Rust, template: str | dict[str, str] | None = None) -> PreTrainedTokenizerFast:
    """The tokenizer as transformers has it."""
    made = PreTrainedTokenizerFast(tokenizer_object=rust, bos_token="<|im_start|>", eos_token="<|im_end|>")
    made.chat_template = template
    return made


def folder(path: Path, rust: Rust, template: str | dict[str, str] | None = None) -> Path:
    """A model folder that can be described, but not loaded."""
    library(rust, template).save_pretrained(path)
    LlamaConfig(
        vocab_size=rust.get_vocab_size(),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
    ).save_pretrained(path)
    return path
