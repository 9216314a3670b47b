"""Prices: the user's own, a public list, what an answer is billed for, and what a plan will be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from niah.config import GridConfig, Named, PriceConfig, RunConfig
from niah.engines.base import ModelInfo
from niah.prompts.tokens import Template, WordTokenizer
from niah.runner.estimate import estimate
from niah.runner.plan import make_plan
from niah.runner.prices import Billed, ListedPrices, OwnPrices, billed, find_prices, why_unpriced
from niah.types import Answer
from tests.helpers.known import known

pytest.importorskip("genai_prices")


def _info(provider: str | None, name: str = "gpt-4o", priced_as: str = "") -> ModelInfo:
    template = Template("completion", "", "")
    return ModelInfo(name, name, "none", WordTokenizer(), template, provider=provider, priced_as=priced_as)


def _config(**more: Any) -> RunConfig:
    backend = Named(name="fake", options={"provider": "openai", "prefix_cache": True, **more.pop("options", {})})
    grid = GridConfig(lengths="1k,2k", depths="3", trials=2)
    return RunConfig(backend=backend, model=more.pop("model", "gpt-4o"), kv=("bf16",), grid=grid, **more)


def test_own_prices_by_hand() -> None:
    own = OwnPrices(PriceConfig(input_usd=2.0, output_usd=10.0, cached_usd=0.2, written_usd=2.5))
    tokens = Billed(prompt=1_000_000, cached=600_000, written=300_000, output=50_000)
    assert own.cost_usd(tokens) == pytest.approx(0.1 * 2 + 0.6 * 0.2 + 0.3 * 2.5 + 0.05 * 10)
    assert own.cost_usd(tokens, batch=True) == pytest.approx(known(own.cost_usd(tokens)) / 2)
    plain = OwnPrices(PriceConfig(input_usd=2.0, output_usd=10.0))
    assert plain.cost_usd(tokens) == pytest.approx(2 + 0.5), "without prices of their own, cached tokens cost as others"
    assert own.to_json()["source"] == "your config"


def test_a_listed_price_agrees_with_its_own_figures() -> None:
    listed = ListedPrices("openai", "gpt-4o")
    prices = listed.to_json()
    tokens = Billed(prompt=100_000, cached=90_000, output=100)
    by_hand = (10_000 * prices["input_usd"] + 90_000 * prices["cached_usd"] + 100 * prices["output_usd"]) / 1e6
    assert listed.cost_usd(tokens) == pytest.approx(by_hand)
    assert listed.cost_usd(Billed(100_000), batch=True) == pytest.approx(0.05 * prices["input_usd"])
    assert prices["source"].startswith("genai-prices ")
    assert len(prices["date"]) == 10
    written = ListedPrices("anthropic", "claude-sonnet-4-5")
    assert known(written.cost_usd(Billed(1000, written=1000))) > known(written.cost_usd(Billed(1000)))


def test_which_price_counts() -> None:
    price = PriceConfig(input_usd=1, output_usd=1)
    assert find_prices(RunConfig(), _info(None)) is None
    assert find_prices(RunConfig(price=price), _info(None)) == OwnPrices(price)
    assert find_prices(RunConfig(price=price), _info("openai")) == OwnPrices(price)
    assert find_prices(RunConfig(), _info("openai")) == ListedPrices("openai", "gpt-4o")
    assert find_prices(RunConfig(), _info("openai", "my-deployment", "gpt-4o")) == ListedPrices("openai", "gpt-4o")
    assert find_prices(RunConfig(), _info("openai", "nobody")) is None
    assert "knows no model 'nobody' of 'openai'" in why_unpriced(_info("openai", "nobody"))
    assert "not billed" in why_unpriced(_info(None))


def test_a_missing_price_list_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *rest: None if n == "genai_prices" else find(n, *rest))
    assert find_prices(RunConfig(), _info("openai")) is None
    assert "pip install 'niah-kv[prices]'" in why_unpriced(_info("openai"))


def test_what_an_answer_is_billed_for() -> None:
    answer = Answer("x", "stop", prompt_tokens=100, output_tokens=5, cached_tokens=60, cache_write_tokens=30)
    assert billed(answer) == Billed(100, 60, 30, 5)
    assert billed(Answer("x", "stop", 100, None)) is None
    assert billed(Answer("x", "stop", None, 5)) is None
    # parts that are more than the whole
    assert billed(Answer("x", "stop", 100, 5, cached_tokens=120, cache_write_tokens=30)) == Billed(100, 100, 0, 5)


def test_a_plan_counts_contexts_once_where_prefixes_are_reused() -> None:
    found = estimate(make_plan(_config()))
    assert found.prompts == 12 + 4
    assert found.prompt_tokens == 6 * (1024 - 24) + 6 * (2048 - 24) + 4 * 256
    assert found.output_tokens == 16 * 24
    # of each context's three questions two read it: all but the questions' own tokens
    assert 0.9 * 2 / 3 * 18_144 < found.cached_tokens < 2 / 3 * 18_144
    prices = ListedPrices("openai", "gpt-4o").to_json()
    most = (found.prompt_tokens * prices["input_usd"] + found.output_tokens * prices["output_usd"]) / 1e6
    assert found.uncached_usd == pytest.approx(most)
    canaries = 4 * (256 * prices["input_usd"] + 24 * prices["output_usd"]) / 1e6
    assert found.batch_usd == pytest.approx(canaries + (most - canaries) / 2), "canaries are asked before the batch"
    assert found.cost_usd < 0.75 * most
    cold = estimate(make_plan(_config(reuse="off")))
    assert (cold.cached_tokens, cold.cost_usd) == (0, pytest.approx(most))


def test_the_estimate_covers_what_is_billed() -> None:
    """Against prompts really built: the scripted service reads contexts from its cache."""
    from niah.runner.prompt_builder import PromptBuilder

    plan = make_plan(_config())
    builder: PromptBuilder = plan.builder
    real = Billed(0)
    for group in plan.groups:
        for position, prompt in enumerate(builder.prompts(group)):
            real += Billed(prompt.token_count, len(prompt.context) if position else 0, 0, 24)
    prices = known(plan.prices)
    cost = sum(
        known(prices.cost_usd(Billed(p.token_count, len(p.context) if i else 0, 0, 24)))
        for group in plan.groups
        for i, p in enumerate(builder.prompts(group))
    )
    canaries = 4 * known(prices.cost_usd(Billed(256, output=24)))
    assert estimate(plan).cost_usd == pytest.approx(cost + canaries, rel=0.03)
    assert estimate(plan).cached_tokens == pytest.approx(real.cached, rel=0.03)


def test_a_plan_without_a_price() -> None:
    found = estimate(make_plan(_config(options={"provider": None})))
    assert found.cost_usd is found.uncached_usd is found.batch_usd is None
    assert found.prompt_tokens > 0


def test_reasoning_is_estimated_with_all_that_it_may_take() -> None:
    plan = make_plan(_config())
    plain = estimate(plan)
    plan.info = replace(plan.info, reasoning_tokens=1000)
    found = estimate(plan)
    assert found.output_tokens == plain.output_tokens + 1000 * plain.prompts
    assert found.prompt_tokens == plain.prompt_tokens


@pytest.mark.parametrize(("provider", "name"), [("openai", "gpt-4o"), ("anthropic", "claude-3-haiku-20240307")])
def test_a_batch_costs_half_where_the_list_has_no_price_for_it(provider: str, name: str) -> None:
    prices = ListedPrices(provider, name)
    tokens = Billed(100_000, output=1000)
    assert prices.cost_usd(tokens, batch=True) == pytest.approx(known(prices.cost_usd(tokens)) / 2)
