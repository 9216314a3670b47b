"""Every backend: what it describes, what it reports, what it refuses; vLLM's own tests run in its environment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from niah import registry
from niah.config import GridConfig, Named, RunConfig
from niah.kv.config import Infini, KVConfig, Window
from niah.kv.grammar import parse_one
from niah.kv.vllm_formats import Nvfp4
from niah.runner.host import this_host
from niah.runner.plan import Plan, make_plan
from niah.types import Answer, Host, Prompt, Reply
from tests.helpers import tiny_models
from tests.helpers.command import Command
from tests.helpers.known import known
from tests.helpers.small_tokenizers import gpt2_rust

# models behind an API are tested against servers on loopback, in tests/engines/hosted
API = ("anthropic", "gemini", "openai")
HERE = [name for name in registry.names("backends") if not name.startswith("vllm") and name not in API]
# a real model on one core takes its time
LENGTHS = {"llamacpp": 384}


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a chat template, as a user would have it in a folder."""
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=gpt2_rust(), eos_token="<|im_end|>")
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        **tiny_models._common(num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=32)
        | {"vocab_size": 640, "max_position_embeddings": 4096}
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def _plan(name: str, model: Path, **more: Any) -> Plan:
    config = RunConfig(
        backend=Named(name=name),
        model=str(model) if name == "transformers" else None,
        kv=("bf16",),
        grid=GridConfig(lengths=str(LENGTHS.get(name, 1024)), depths="3", trials=1),
        answer_budget=12,
        **more,
    )
    plan = make_plan(config)
    assert plan.problems == []
    return plan


def _ask(plan: Plan, kv: KVConfig, *, reuse: bool = True) -> tuple[list[Prompt], list[Reply], dict[str, Any]]:
    from niah.engines.base import SessionRequest

    async def go() -> tuple[list[Prompt], list[Reply], dict[str, Any]]:
        prompts = plan.builder.prompts(plan.groups[0])
        request = SessionRequest(kv, max(plan.lengths), reuse, plan.builder.task.is_complete)
        async with plan.backend.open(plan.options, plan.info) as engine, engine.session(request) as session:
            assert session.max_in_flight >= 1
            return prompts, await session.answer(prompts), session.effective()

    return asyncio.run(go())


@pytest.mark.parametrize("name", HERE)
def test_answers_in_order_with_the_tokens_that_were_sent(name: str, tiny_folder: Path) -> None:
    plan = _plan(name, tiny_folder)
    prompts, replies, effective = _ask(plan, parse_one("bf16"))
    assert len(replies) == len(prompts) == 3
    assert effective
    for prompt, reply in zip(prompts, replies, strict=True):
        assert isinstance(reply, Answer)
        assert reply.prompt_tokens == prompt.token_count == plan.lengths[0] - prompt.answer_budget
        assert known(reply.output_tokens) <= known(prompt.answer_budget)
        assert reply.stop in ("stop", "end", "length")
        usage = reply.memory
        if usage.source == "not_observable":
            assert usage.logical_bytes is None, "what cannot be seen is null, never zero"
        else:
            assert usage.logical_bytes == usage.formula_bytes


@pytest.mark.parametrize("name", HERE)
def test_a_session_can_be_opened_again(name: str, tiny_folder: Path) -> None:
    plan = _plan(name, tiny_folder)
    first, again = (_ask(plan, parse_one("bf16"))[1] for _ in range(2))
    assert [r.text for r in first if isinstance(r, Answer)] == [r.text for r in again if isinstance(r, Answer)]


@pytest.mark.parametrize("name", registry.names("backends"))
def test_check_is_pure_and_gives_reasons(name: str) -> None:
    backend = registry.load("backends", name)
    options = backend.options()
    strange = KVConfig("strange", Nvfp4("nvfp4"), Nvfp4("nvfp4"), tokens=Window(8, 4), memory=Infini(64), kv_heads=1)
    for host in (Host(), this_host()):
        for setting in (parse_one("bf16"), parse_one("int4"), strange):
            problems = backend.problems(options, setting, None, host)
            assert problems == backend.problems(options, setting, None, host)
            assert all(p.field and p.reason for p in problems)
    if name not in ("fake", "oracle"):
        assert backend.problems(options, strange, None, Host()), "a setting that cannot be honored must be refused"


@pytest.mark.parametrize("name", registry.names("backends"))
def test_options_refuse_unknown_keys_and_quiet_ones_leave_the_identity(name: str) -> None:
    backend = registry.load("backends", name)
    with pytest.raises(ValueError, match="extra"):
        backend.options(no_such_option=1)
    identity = backend.options().identity()
    assert "threads" not in identity
    named = {
        name: (info.json_schema_extra or {}).get("formerly") for name, info in backend.options.model_fields.items()
    }
    assert set(identity) <= {former or name for name, former in named.items()}


def test_a_model_folder_with_a_template(tiny_folder: Path) -> None:
    info = _plan("transformers", tiny_folder).info
    assert info.template.name == "chat"
    assert info.template.prefix.endswith("<|im_start|>user\n")
    assert info.template.suffix.endswith("<|im_start|>assistant\n")
    assert info.context_tokens == 4096
    assert info.revision.startswith("local:")


def test_transformers_refuses_before_it_loads(niah: Command, tiny_folder: Path, tmp_path: Path) -> None:
    said = niah("run", "-m", tiny_folder, "-l", "8k", "--kv", "bf16", "--out", tmp_path / "o")
    assert said.code == 2
    assert "takes at most 4,096 tokens" in said.err
    said = niah("run", "-m", tiny_folder, "-l", "1k", "--kv", "int4(group_size=24)", "--out", tmp_path / "o")
    assert said.code == 2
    assert "24" in said.err
    assert "32" in said.err
    said = niah("run", "-m", tiny_folder, "-l", "1k", "--set", "backend.device=cuda:7", "--out", tmp_path / "o")
    assert said.code in (2, 4)
    assert "Traceback" not in said.err


def test_out_of_memory_is_a_failure_and_not_a_miss(
    niah: Command, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import niah as package
    from niah.backends.transformers.load import LoadedModel

    step = LoadedModel.step

    def sometimes(
        self: LoadedModel, ids: list[int], positions: list[int], cache: Any, mask: Any = None, keep: Any = None
    ) -> Any:
        if positions[0] > 600 and mask is None:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory")
        return step(self, ids, positions, cache, mask, keep)

    monkeypatch.setattr(LoadedModel, "step", sometimes)
    said = niah("run", "-m", tiny_folder, "-l", "512,2k", "-d", "2", "-n", "1", "--kv", "bf16", "--out", tmp_path)
    assert said.code == 3
    rows = package.load(tmp_path).rows
    failed = [row for row in rows if row.length == 2048]
    assert {row.error_kind for row in failed} == {"out_of_memory"}
    assert all(row.correct is None for row in failed)
    assert all(row.outcome != "failed" for row in rows if row.length == 512)
