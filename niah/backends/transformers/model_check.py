"""Checks a model at first use: compares answers of a session with plain forward passes of the same ids.

A model family with unsupported attention (positions that are counted, frequencies that depend on the length, a mask
that is ignored) would otherwise give wrong results without an error. Token ids are drawn at random: what is compared is
the computation, not what the model knows. It runs in fp32 with an fp32 cache, where the two differ by rounding alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import torch

from niah.backends.transformers.length_dependent_rope import LengthDependentRope, restart
from niah.backends.transformers.load import LoadedModel
from niah.backends.transformers.method import Running, Setting
from niah.engines.base import ModelInfo, SessionRequest
from niah.errors import BackendUnavailable, CellError, boundary
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.models.embedded import cache_root
from niah.models.shape import ModelShape
from niah.types import Answer, Case, Prompt

if TYPE_CHECKING:
    from niah.backends.transformers.options import TransformersOptions
    from niah.backends.transformers.session import HFSession

TOLERANCE_NATS = 1e-2
# where the weights do not fit in fp32, or are quantized: sums of a few bf16 log-probabilities differ by some tenths
COARSE_TOLERANCE_NATS = 1.0
SHORT_TOKENS = 96
# tokens by which a context exceeds a switch length
BEYOND_TOKENS = 24
# larger numbers in a config are no lengths that a run reaches
MOST_TOKENS = 10_000_000
_TAILS = (5, 9)
_GOLD_TOKENS = 4
_CHUNKS = 3
_PACKAGES = ("torch", "transformers")
# config keys of lengths at which attention may change, also for families whose shape does not name them
_SWITCHES = re.compile(r"window|chunk|local|segment|block_size|stride|original_max")


@dataclass(frozen=True)
class CheckResult:
    """Result of the check.

    Attributes:
        contexts: lengths of the checked contexts in tokens.
        widest_nats: largest difference of a log-probability from that of a plain pass.
        dtype: compute dtype of both.
    """

    contexts: tuple[int, ...]
    widest_nats: float
    dtype: str

    def sentence(self) -> str:
        lengths = ", ".join(f"{tokens:,}" for tokens in self.contexts)
        return f"packed answers equal plain passes within {self.widest_nats:.1g} nats ({self.dtype}; {lengths} tokens)"


def check_model(loaded: LoadedModel, info: ModelInfo, options: TransformersOptions, max_length: int) -> str:
    """Check a model unless a stored result exists; returns the sentence for the record.

    Args:
        max_length: longest sequence of the run in tokens: nothing is compared beyond it.

    Raises:
        BackendUnavailable: an answer differs from that of a plain pass; both numbers are in the message.
    """
    if options.skip_checks:
        return "skipped: answers were not compared with plain passes (backend.skip_checks)"
    if info.shape is None:
        return "skipped: the model's shape is not known"
    contexts = context_lengths(info.shape, switch_lengths(loaded), max_length)
    file = _result_file(loaded, info, options, contexts)
    found = _read(file)
    if found is None:
        found = compare(loaded, info, options, contexts)
        _write(file, found)
    return found.sentence()


@dataclass(frozen=True)
class SwitchLengths:
    """Lengths in tokens at which a model may compute otherwise: of its rotary embedding, and of its attention."""

    rope: tuple[int, ...] = ()
    attention: tuple[int, ...] = ()


def switch_lengths(loaded: LoadedModel) -> SwitchLengths:
    """Read the lengths from the loaded model and its config."""
    config = loaded.model.config.get_text_config().to_dict()
    named = {int(value) for key, value in _numbers(config) if _SWITCHES.search(key) and 1 < value < MOST_TOKENS}
    rope = LengthDependentRope(loaded.model).switches
    return SwitchLengths(rope, tuple(sorted(named - set(rope))))


def _numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(key), value


def context_lengths(shape: ModelShape, switches: SwitchLengths, max_length: int) -> tuple[int, ...]:
    """Context lengths in tokens to check: a short one, and both sides of each ``SwitchLengths`` length."""
    room = max(_TAILS) + _GOLD_TOKENS
    most = min(max_length, shape.context_tokens or max_length) - room
    windows = {layer.window for layer in shape.layers if layer.window is not None}
    wanted = {SHORT_TOKENS}
    for switch in windows | {*switches.rope, *switches.attention}:
        wanted |= {switch + BEYOND_TOKENS, *((switch // 2,) if switch <= SHORT_TOKENS else ())}
    # of two questions behind it, one ends on either side
    wanted |= {switch - sum(_TAILS) // 2 - _GOLD_TOKENS for switch in switches.rope}
    return tuple(sorted({tokens for tokens in wanted if 0 < tokens <= most})) or (max(1, most),)


def compare(loaded: LoadedModel, info: ModelInfo, options: TransformersOptions, contexts: Sequence[int]) -> CheckResult:
    """Ask behind each context through a session of the backend, and compare with plain passes.

    Raises:
        BackendUnavailable: they differ by more than the tolerance.
    """
    from niah.backends.transformers.session import HFSession

    if info.shape is None:
        raise BackendUnavailable(f"the shape of {info.name!r} is not known, so its answers cannot be checked.")
    with _in_fp32(loaded) as (precise, tolerance):
        chunk = max(contexts[0] // _CHUNKS, contexts[-1] // _CHUNKS, 1)
        name = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}[precise.dtype]
        kv = KVConfig("check", Plain(name), Plain(name))
        running = Running(Setting(precise, kv, info.shape, threads=options.thread_count()))
        request = SessionRequest(kv, max(contexts), reuse=True, is_complete=lambda *_: False)
        session = HFSession(running, info, options.model_copy(update={"prefill_chunk": chunk}), request)
        ids = _ids(info.shape, precise, max(contexts) + 1)
        widest = 0.0
        try:
            # the short one once more at the end, from a cache that has held longer ones
            for tokens in (*contexts, contexts[0]):
                with _failures_as_unavailable(info):
                    widest = max(widest, _furthest(precise, info, session, _group(ids, tokens), tolerance))
        finally:
            session.release()
    return CheckResult(tuple(contexts), widest, str(precise.dtype).removeprefix("torch."))


@contextmanager
def _failures_as_unavailable(info: ModelInfo) -> Iterator[None]:
    """Turn any failure of a model into ``BackendUnavailable`` with one sentence."""
    try:
        with boundary("model", "it fails"):
            yield
    except CellError as err:
        first = str(err).splitlines()[0]
        raise BackendUnavailable(
            f"{_of(info)} cannot be run by this backend: {first}. Use --backend vllm or llamacpp."
        ) from err


def _furthest(
    loaded: LoadedModel, info: ModelInfo, session: HFSession, group: Sequence[Prompt], tolerance: float
) -> float:
    widest = 0.0
    for prompt, reply in zip(group, session.ask(list(group)), strict=True):
        if not isinstance(reply, Answer):
            raise CellError(reply.kind, f"{reply.kind}: {reply.message}")
        widest = max(widest, _difference(loaded, info, prompt, reply, session.outputs, tolerance))
    return widest


def _of(info: ModelInfo) -> str:
    kind = info.shape.model_type if info.shape is not None else ""
    return f"the model {info.name!r}" + (f" (family {kind!r})" if kind else "")


def _difference(
    loaded: LoadedModel, info: ModelInfo, prompt: Prompt, reply: Answer, outputs: dict[str, list[int]], tolerance: float
) -> float:
    """Difference in nats to a plain pass, for the expected answer and for the generated one."""
    before = prompt.ids()
    gold = list(prompt.gold)
    plain = float(_plain(loaded, before, gold).gather(1, torch.tensor(gold, device=loaded.device)[:, None]).sum())
    own = reply.logprob if reply.logprob is not None else math.nan
    _refuse(info, prompt, own, plain, abs(own - plain), tolerance)
    said = outputs[prompt.sha256]
    # of another length than the expected answer, a sequence may be turned by other frequencies
    if not said or (len(said) != len(gold) and LengthDependentRope(loaded.model)):
        return abs(own - plain)
    scores = _plain(loaded, before, said)
    chosen = scores.gather(1, torch.tensor(said, device=loaded.device)[:, None])[:, 0]
    behind = (scores.amax(-1) - chosen).max()
    best, took = float(scores.amax(-1).sum()), float(chosen.sum())
    _refuse(info, prompt, took, best, float(behind), tolerance)
    return max(abs(own - plain), float(behind))


def _refuse(info: ModelInfo, prompt: Prompt, own: float, plain: float, difference: float, tolerance: float) -> None:
    # NaN counts as a difference
    if difference <= tolerance:
        return
    raise BackendUnavailable(
        f"{_of(info)}: behind {len(prompt.context):,} tokens the log-probability of an answer is {own:.4f}, and in a "
        f"plain forward pass {plain:.4f}: this backend does not run the model correctly. Use --backend vllm or "
        "llamacpp, or run it anyway with --set backend.skip_checks=true."
    )


def _plain(loaded: LoadedModel, before: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
    """Log-probabilities ``[len(answer), vocab]`` in one forward pass: without niah's cache, mask or positions."""
    config = loaded.model.config.get_text_config()
    own = config._attn_implementation  # noqa: SLF001
    restart(loaded.model)
    config._attn_implementation = "eager" if loaded.attention == "eager" else "sdpa"  # noqa: SLF001
    try:
        with torch.inference_mode():
            ids = torch.tensor([[*before, *answer]], device=loaded.device)
            out = loaded.model(input_ids=ids, use_cache=False, logits_to_keep=len(answer) + 1)
            logits: torch.Tensor = out.logits[0, :-1]
    finally:
        config._attn_implementation = own  # noqa: SLF001
    return logits[-len(answer) :].float().log_softmax(-1)


def _ids(shape: ModelShape, loaded: LoadedModel, count: int) -> list[int]:
    """Random token ids; the first hundred and the last of a vocabulary are often special tokens."""
    config = loaded.model.config.get_text_config()
    size = int(config.vocab_size)
    low, high = min(100, size // 10), max(size // 10 + 1, size * 3 // 5)
    drawn = torch.randint(low, high, (count + 64,), generator=torch.Generator().manual_seed(len(shape.layers)))
    return [token for token in drawn.tolist() if token not in loaded.ends]


def _group(ids: Sequence[int], tokens: int) -> list[Prompt]:
    context = array("i", ids[:tokens])
    prompts = []
    for number, size in enumerate(_TAILS):
        at = (7 * number + 1) % max(1, len(ids) - size - _GOLD_TOKENS)
        tail, gold = ids[at : at + size], ids[at + size : at + size + _GOLD_TOKENS]
        case = Case(0.5, (), "", "", "", ("",), "", (), "exact")
        key = f"{tokens}/{number}"
        prompts.append(Prompt(context, array("i", tail), tuple(gold), _GOLD_TOKENS, case, 0.5, (), key, str(tokens)))
    return prompts


@contextmanager
def _in_fp32(loaded: LoadedModel) -> Iterator[tuple[LoadedModel, float]]:
    """The model in fp32 for as long as the block lasts, where that is possible, and the tolerance that goes with it.

    Widening 16-bit weights and narrowing them again gives the same weights.
    """
    tensors = list(chain(loaded.model.parameters(), loaded.model.buffers()))
    narrow = [(tensor, tensor.dtype) for tensor in tensors if tensor.dtype in (torch.bfloat16, torch.float16)]
    whole = all(parameter.dtype.is_floating_point for parameter in loaded.model.parameters())
    if not whole or not _fits(loaded.device, sum(tensor.numel() for tensor, _ in narrow)):
        yield loaded, TOLERANCE_NATS if loaded.dtype == torch.float32 else COARSE_TOLERANCE_NATS
        return
    try:
        for tensor, _ in narrow:
            tensor.data = tensor.data.float()
        yield replace(loaded, dtype=torch.float32), TOLERANCE_NATS
    finally:
        for tensor, dtype in narrow:
            tensor.data = tensor.data.to(dtype)


def _fits(device: torch.device, elements: int) -> bool:
    """Whether memory allows converting so many 16-bit elements to fp32, with as much again left free."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return 4 * elements < free
    return 4 * elements < int(psutil.virtual_memory().available)


def _result_file(loaded: LoadedModel, info: ModelInfo, options: TransformersOptions, contexts: Sequence[int]) -> Path:
    """File of the stored result, by model, code, library versions and device type."""
    parts = [
        info.revision,
        list(contexts),
        options.identity(),
        loaded.attention,
        loaded.device.type,
        str(loaded.dtype),
        _code_digest(),
        *(_version(package) for package in _PACKAGES),
    ]
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=12).hexdigest()
    return cache_root() / "model-checks" / f"{digest}.json"


def _code_digest() -> str:
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _read(file: Path) -> CheckResult | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return CheckResult(tuple(int(n) for n in data["contexts"]), float(data["widest_nats"]), str(data["dtype"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or not readable: checked anew


def _write(file: Path, found: CheckResult) -> None:
    staging = file.with_suffix(f".{os.getpid()}.tmp")
    # a cache that cannot be written costs the check again, not the run
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        staging.write_text(json.dumps(asdict(found)), encoding="utf-8")
        staging.replace(file)
