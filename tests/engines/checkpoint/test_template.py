"""What stands around a text: by the model's own files, and in the ids that transformers itself makes of it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Self

import pytest
from transformers import AutoTokenizer
from transformers.utils import chat_template_utils

from niah.engines.base import ModelInfo
from niah.engines.checkpoint.describe import describe_model
from niah.engines.checkpoint.template import DEFAULT_DATE, read_template
from niah.errors import ConfigError
from niah.prompts.builder import build_context
from niah.prompts.segments import tokenize
from niah.prompts.tokens import FastTokenizer, Template
from niah.types import Case, Needle, Prompt
from tests.helpers.known import known
from tests.helpers.model_files import CHATML, INSTRUCT, KINDS, begun, folder, library
from tests.helpers.small_tokenizers import SPECIALS, Village, gemma_rust, gpt2_rust, llama2_rust

START, END = SPECIALS
INSTRUCTION = "The text below hides a number."
QUESTION = "What is the special magic number for Oslo?"
TODAY = "{{ '<|im_start|>system\nToday: ' + strftime_now('%d %b %Y %H:%M:%S.%f') + '<|im_end|>\n' }}"


def _described(path: Path, **more: object) -> ModelInfo:
    asked: dict[str, object] = {"template": "auto", "trust_remote_code": False, "revision": None, **more}
    asked["needs_weights"] = False
    return describe_model(str(path), **asked)  # type: ignore[arg-type]


def _prompt(info: ModelInfo, lead: str = "") -> Prompt:
    needle = Needle(0.5, "The special magic number for Oslo is 7412839.", "Oslo", "7412839")
    case = Case(
        depth=0.5,
        needles=(needle,),
        instruction=INSTRUCTION,
        question=QUESTION,
        answer_prefix=lead,
        expected=("7412839",),
        distractors=(),
        gold=" 7412839" if lead else "7412839",
        scorer="exact",
    )
    segmented = tokenize(Village(), 0, info.tokenizer, 600)
    return build_context(info.tokenizer, info.template, segmented, [case], 600, 24)[0]


def _content(info: ModelInfo, prompt: Prompt) -> str:
    """The user's text of a prompt, as decoded without habits."""
    text = info.tokenizer.decode(prompt.ids())
    return text[text.index(INSTRUCTION) : text.index(QUESTION) + len(QUESTION)]


def _tail(info: ModelInfo, prompt: Prompt, kind: str) -> list[int]:
    """The tail, less the blank line that Llama 3 has in one token with the full stop before it."""
    fused = len(info.tokenizer.encode("\n\n")) if kind == "llama3" else 0
    return list(prompt.tail)[fused:]


@pytest.mark.parametrize("template", [CHATML, INSTRUCT], ids=["chatml", "instruct"])
@pytest.mark.parametrize("kind", KINDS)
def test_head_and_tail_of_a_chat_are_those_of_the_library(kind: str, template: str, tmp_path: Path) -> None:
    info = _described(folder(tmp_path, begun(KINDS[kind](), START), template))
    assert info.template.name == "chat"
    prompt = _prompt(info)
    own = AutoTokenizer.from_pretrained(tmp_path)
    message = [{"role": "user", "content": _content(info, prompt)}]
    ids = own.apply_chat_template(message, tokenize=True, add_generation_prompt=True, return_dict=False)
    assert isinstance(info.tokenizer, FastTokenizer)
    head = info.tokenizer.encode_start(info.template.prefix + INSTRUCTION)
    assert prompt.ids()[: len(head)] == list(ids[: len(head)])
    tail = _tail(info, prompt, kind)
    assert tail == list(ids[-len(tail) :])
    assert prompt.ids().count(own.bos_token_id) == list(ids).count(own.bos_token_id)
    assert prompt.ids()[:1] == [own.bos_token_id]


@pytest.mark.parametrize(("begins", "ends"), [("", ""), (START, ""), ("", END), (START, END)])
@pytest.mark.parametrize("kind", KINDS)
def test_head_and_tail_of_a_completion_are_those_of_the_library(
    kind: str, begins: str, ends: str, tmp_path: Path
) -> None:
    """At most what begins a text, once; never what ends one."""
    info = _described(folder(tmp_path, begun(KINDS[kind](), begins, ends)))
    assert info.template.name == "completion"
    assert info.template.start == begins
    prompt = _prompt(info)
    own = AutoTokenizer.from_pretrained(tmp_path)
    ids = own(_content(info, prompt)).input_ids
    ids = ids[:-1] if ends else ids
    assert isinstance(info.tokenizer, FastTokenizer)
    head = len(info.tokenizer.encode_start(INSTRUCTION)) + bool(begins)
    assert prompt.ids()[:head] == ids[:head]
    tail = _tail(info, prompt, kind)
    assert tail == ids[-len(tail) :]
    assert prompt.ids().count(own.bos_token_id) == bool(begins)
    assert own.eos_token_id not in prompt.ids()
    assert info.tokenizer.decode(prompt.ids()).lstrip(" ").startswith(begins or INSTRUCTION)
    assert dict(info.template.notes)["prompt.start"] == (begins or "none")


def test_llama_2_begins_with_a_blank_where_its_library_puts_one() -> None:
    rust = llama2_rust()
    made = FastTokenizer(rust, "llama2", as_library=True)
    tokens = [rust.id_to_token(token) for token in made.encode_start("[INST] Read on.")]
    assert known(tokens[0]).startswith("▁")
    assert made.encode("[INST]") == made.encode_rest("[INST]")
    # sent as text, the blank would be put there twice
    assert FastTokenizer(rust, "llama2").encode_start("Read on.") == made.encode("Read on.")
    assert FastTokenizer(rust, "llama2").digest != made.digest
    plain = gpt2_rust()
    assert FastTokenizer(plain, "gpt2").digest == FastTokenizer(plain, "gpt2", as_library=True).digest


class _Tomorrow(dt.datetime):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Self:
        return cls(2031, 5, 6, 7, 8, 9)


def test_a_dated_template_prints_one_day_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    own = library(gpt2_rust(), TODAY + CHATML)
    found = read_template("auto", own, "m")
    assert "Today: 01 Jan 2025 00:00:00.000000<" in found.prefix
    assert found.date == DEFAULT_DATE == dict(found.notes)["prompt.date"]
    monkeypatch.setattr(chat_template_utils, "datetime", _Tomorrow)
    assert "06 May 2031" in own.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
    assert read_template("auto", own, "m") == found
    assert chat_template_utils.datetime is _Tomorrow
    named = read_template("auto", own, "m", day="2026-11-30")
    assert "Today: 30 Nov 2026 00:00:00" in named.prefix
    assert named.date == "2026-11-30"
    assert named.digest != found.digest
    with pytest.raises(ConfigError, match=r"backend.date '30.11.2026' is no date"):
        read_template("auto", own, "m", day="30.11.2026")


def test_a_day_that_a_template_names_itself_stays() -> None:
    """Llama 3.1 prints a day of its own, Llama 3.2 only where there is no clock."""
    own = "{%- if not date_string is defined %}{%- set date_string = '26 Jul 2024' %}{%- endif %}"
    own += "Today: {{ date_string }}\n"
    found = read_template("auto", library(gpt2_rust(), own + CHATML), "m")
    assert found.prefix.startswith("Today: 26 Jul 2024\n")
    assert found.date == ""
    assert "prompt.date" not in dict(found.notes)
    clock = own.replace("'26 Jul 2024'", "strftime_now('%d %b %Y') if strftime_now is defined else '26 Jul 2024'")
    found = read_template("auto", library(gpt2_rust(), clock + CHATML), "m")
    assert found.prefix.startswith("Today: 01 Jan 2025\n")
    assert found.date == DEFAULT_DATE


@pytest.mark.parametrize(
    ("opened", "closed"),
    [
        ("<think>\n", "<think>\n\n</think>\n\n"),
        ("<think>", "<think></think>"),
        ("<thinking>\n", "<thinking>\n\n</thinking>\n\n"),
        ("<thought>\n", "<thought>\n\n</thought>\n\n"),
        ("<seed:think>", "<seed:think></seed:think>"),
        ("<think>\nOkay, let me see. ", "<think>\nOkay, let me see. \n</think>\n\n"),
        ("[THINK]", "[THINK][/THINK]"),
        ("◁think▷", "◁think▷◁/think▷"),
        ("<|START_THINKING|>", "<|START_THINKING|><|END_THINKING|>"),
        ("<|begin_of_thought|>\n", "<|begin_of_thought|>\n\n<|end_of_thought|>\n\n"),
        ("<|inner_prefix|>", "<|inner_prefix|><|inner_suffix|>"),
        ("<|channel>thought\n", "<|channel>thought\n\n<channel|>\n\n"),
    ],
)
def test_reasoning_left_open_is_closed(opened: str, closed: str) -> None:
    template = CHATML.replace("assistant\n'", f"assistant\n{opened}'")
    found = read_template("auto", library(gpt2_rust(), template), "m")
    assert found.suffix == "<|im_end|>\n<|im_start|>assistant\n" + closed
    assert found.lead
    assert dict(found.notes)["prompt.thinking"].endswith("closed")


@pytest.mark.parametrize(
    "shut", ["<think>\n\n</think>\n\n", "<|channel>thought\n<channel|>", "Use <think> tags.<|im_end|>\n"]
)
def test_reasoning_that_is_shut_or_only_spoken_of_is_left_alone(shut: str) -> None:
    template = CHATML.replace("assistant\n'", f"assistant\n{shut}'")
    found = read_template("auto", library(gpt2_rust(), template), "m")
    assert found.suffix.endswith(shut)
    assert "prompt.thinking" not in dict(found.notes)


@pytest.mark.parametrize("opened", ["", "<|channel|>analysis", "<|channel|>analysis<|message|>"])
def test_harmony_answers_in_its_final_channel(opened: str) -> None:
    """The reply of gpt-oss names a channel first: its format is said in https://github.com/openai/harmony."""
    template = "{% for m in messages %}{{ '<|start|>' + m['role'] + '<|message|>' + m['content'] + '<|end|>' }}"
    template += "{% endfor %}{# <|channel|> #}{{ '<|start|>assistant" + opened + "' }}"
    found = read_template("auto", library(gpt2_rust(), template), "m")
    ended = "<|channel|>analysis<|message|><|end|><|start|>assistant" if opened else ""
    assert found.suffix == f"<|end|><|start|>assistant{ended}<|channel|>final<|message|>"
    assert "final channel opened" in dict(found.notes)["prompt.thinking"]


@pytest.mark.parametrize("name", ["enable_thinking", "thinking"])
def test_reasoning_is_switched_off_where_the_template_has_a_switch(name: str) -> None:
    """As Qwen 3 and DeepSeek V3.1 have it."""
    template = (
        CHATML + "{%- if " + name + " is defined and not " + name + " %}{{ '<think>\n\n</think>\n\n' }}{%- endif %}"
    )
    found = read_template("auto", library(gpt2_rust(), template), "m")
    assert found.suffix.endswith("assistant\n<think>\n\n</think>\n\n")
    assert dict(found.notes)["prompt.thinking"] == f"{name}=False"
    # a message's field of that name is no switch
    field = "{% if messages[0].thinking %}{{ messages[0]['enable_thinking'] }}{% endif %}"
    assert "prompt.thinking" not in dict(read_template("auto", library(gpt2_rust(), field + CHATML), "m").notes)


def test_an_opening_token_without_a_closing_one_leaves_the_answer_prefix_out(tmp_path: Path) -> None:
    rust = gpt2_rust()
    rust.add_special_tokens(["<think>"])
    template = CHATML.replace("assistant\n'", "assistant\n<think>'")
    info = _described(folder(tmp_path, rust, template))
    assert not info.assistant_prefill
    assert info.template.suffix.endswith("<think>")
    assert "answer prefix left out" in dict(info.template.notes)["prompt.thinking"]
    assert info.template.digest != Template("chat", info.template.prefix, info.template.suffix).digest
    rust.add_special_tokens(["</think>"])
    again = _described(folder(tmp_path / "both", rust, template))
    assert again.assistant_prefill
    assert again.template.suffix.endswith("<think></think>")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (
            "{% if messages[0]['role'] != 'system' %}{{ raise_exception('system first') }}{% endif %}" + CHATML,
            "system first",
        ),
        ("{{ messages[1]['content'] }}" + CHATML, "no element 1|has no element"),
        ("{{ messages[0]['content'] + 1 }}", "str"),
        ("{% if %}", "Expected an expression"),
        ("{{ messages[0].content | nothing }}", "nothing"),
        ("{{ 1 // 0 }}" + CHATML, "zero"),
    ],
)
def test_a_template_that_fails_is_one_sentence(template: str, reason: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"cannot be used for a single question \(.*({reason}).*backend.template=compl"
    ):
        read_template("auto", library(gpt2_rust(), template), "m")
    assert read_template("completion", library(gpt2_rust(), template), "m").name == "completion"


@pytest.mark.parametrize(
    "change",
    ["| lower", "| e", "| tojson", "| replace('  ', ' ')", "| length", "[:20]", " * 2", "| wordcount", "| title"],
)
def test_a_template_that_changes_the_users_text_is_refused(change: str) -> None:
    template = CHATML.replace("m['content']", f"(m['content'] {change}) | string")
    with pytest.raises(ConfigError, match="hides or changes the user's text"):
        read_template("chat", library(gpt2_rust(), template), "m")


def test_a_template_that_repeats_the_users_text_is_refused_for_that() -> None:
    """And not for what it does with a list of parts, which it was only tried with."""
    template = CHATML.replace("m['content']", "m['content'] + m['content']")
    with pytest.raises(ConfigError, match="hides or changes the user's text"):
        read_template("chat", library(gpt2_rust(), template), "m")


def test_a_template_may_trim_and_may_want_parts() -> None:
    trimmed = CHATML.replace("m['content']", "m['content'] | trim")
    wanted = read_template("auto", library(gpt2_rust(), CHATML), "m")
    assert read_template("auto", library(gpt2_rust(), trimmed), "m") == wanted
    parts = CHATML.replace("m['content']", "m['content'][0]['text']")
    assert read_template("auto", library(gpt2_rust(), parts), "m") == wanted
    loop = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}!"
    )
    assert read_template("auto", library(gpt2_rust(), loop), "m").suffix == "!"


def test_named_templates(tmp_path: Path) -> None:
    both = {"default": CHATML, "tool_use": "tools: " + CHATML}
    found = _described(folder(tmp_path / "both", gpt2_rust(), both)).template
    assert found == read_template("auto", library(gpt2_rust(), CHATML), "m")
    with pytest.raises(ConfigError, match=r"backend\.template=completion"):
        _described(folder(tmp_path / "one", gpt2_rust(), {"tool_use": CHATML, "rag": CHATML}))
    with pytest.raises(ConfigError, match="no chat template"):
        read_template("chat", library(gpt2_rust()), "m")


def test_an_engine_begins_a_chat_as_its_file_says() -> None:
    """llama.cpp puts BOS before a chat whose template writes none, and never a second one."""
    own = begun(gemma_rust(), START)
    bare = CHATML.replace("<|im_start|>", "#")
    assert read_template("auto", library(own, bare), "m").start == ""
    assert read_template("auto", library(own, bare), "m", as_engine=True).start == START
    assert read_template("auto", library(own, CHATML), "m", as_engine=True).start == ""
    assert read_template("auto", library(gemma_rust(), bare), "m", as_engine=True).start == ""
