"""Prices of tokens: the user's own, or the public list of the package genai-prices."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from niah.config import PriceConfig, RunConfig
from niah.engines.base import ModelInfo
from niah.types import Answer

_PACKAGE = "genai-prices"
_PER = 1_000_000
# what OpenAI and Anthropic take for a batch: https://platform.openai.com/docs/guides/batch,
# https://docs.claude.com/en/docs/build-with-claude/batch-processing
_BATCH_FACTOR = 0.5
# prices in a list of the package, by the names that they have here
_LISTED = {
    "input_usd": "input_mtok",
    "cached_usd": "cache_read_mtok",
    "written_usd": "cache_write_mtok",
    "output_usd": "output_mtok",
}


@dataclass(frozen=True, slots=True)
class Billed:
    """Tokens as providers bill them.

    Attributes:
        prompt: all prompt tokens, cached and written ones included.
        cached: of these, read from the provider's prefix cache.
        written: of these, written to it where that has a price of its own.
        output: generated tokens, reasoning included.
    """

    prompt: int
    cached: int = 0
    written: int = 0
    output: int = 0

    def __add__(self, other: Billed) -> Billed:
        return Billed(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.written + other.written,
            self.output + other.output,
        )

    @property
    def total(self) -> int:
        """Prompt and output tokens together, which ``--max-tokens`` limits."""
        return self.prompt + self.output


def billed(answer: Answer) -> Billed | None:
    """What an answer is billed for; None where its reply did not say."""
    prompt, output = answer.prompt_tokens, answer.output_tokens
    if prompt is None or output is None:
        return None
    # a provider's parts can add up to more than the whole only by mistake, and a mistake must not end a run
    cached = min(answer.cached_tokens, prompt)
    return Billed(prompt, cached, min(answer.cache_write_tokens, prompt - cached), output)


class Prices(Protocol):
    """Prices of one model."""

    def cost_usd(self, tokens: Billed, *, batch: bool = False) -> float | None:
        """US dollars; None where the list has no answer."""
        ...

    def to_json(self) -> dict[str, Any]:
        """For the record of a run: source, date, and US dollars per million tokens."""
        ...


@dataclass(frozen=True, slots=True)
class OwnPrices:
    """Prices that the user gave in the config."""

    config: PriceConfig

    def cost_usd(self, tokens: Billed, *, batch: bool = False) -> float | None:
        own = self.config
        cached_usd = own.input_usd if own.cached_usd is None else own.cached_usd
        written_usd = own.input_usd if own.written_usd is None else own.written_usd
        plain = tokens.prompt - tokens.cached - tokens.written
        total = (
            plain * own.input_usd
            + tokens.cached * cached_usd
            + tokens.written * written_usd
            + tokens.output * own.output_usd
        )
        return total / _PER * (own.batch_factor if batch else 1.0)

    def to_json(self) -> dict[str, Any]:
        return {"source": "your config", "date": _today(), **self.config.model_dump(mode="json", exclude_none=True)}


@dataclass(frozen=True, slots=True)
class ListedPrices:
    """Prices of a provider's model by the bundled list of genai-prices; nothing is fetched."""

    provider: str
    model: str

    def cost_usd(self, tokens: Billed, *, batch: bool = False) -> float | None:
        found = self._calculate(tokens, batch=batch)
        if found is None:
            return None
        total = float(found.total_price)
        # for many models the list has no batch price of its own and gives the plain one back
        is_plain = batch and total == float(self._calculate(tokens).total_price)
        return total * _BATCH_FACTOR if is_plain else total

    def _calculate(self, tokens: Billed, *, batch: bool = False) -> Any:
        from genai_prices import Usage, calc_price

        usage = Usage(
            input_tokens=tokens.prompt,
            cache_read_tokens=tokens.cached,
            cache_write_tokens=tokens.written,
            output_tokens=tokens.output,
        )
        context = {"processing": "batch"} if batch else None
        try:
            return calc_price(usage, self.model, provider_id=self.provider, price_context=context)
        except (LookupError, ValueError):
            return None

    @property
    def is_known(self) -> bool:
        """Whether the list knows the model."""
        return self._calculate(Billed(1, output=1)) is not None

    def to_json(self) -> dict[str, Any]:
        found = self._calculate(Billed(1, output=1))
        prices = {} if found is None else {name: _plain(found.model_price, key) for name, key in _LISTED.items()}
        return {
            "source": f"{_PACKAGE} {importlib.metadata.version(_PACKAGE)}",
            "date": _today(),
            "provider": self.provider if found is None else found.provider.id,
            "model": self.model if found is None else found.model.id,
            **{name: price for name, price in prices.items() if price is not None},
        }


def _plain(prices: Any, key: str) -> float | None:
    """A list price in US dollars per million tokens; of a price in steps the first one."""
    price = getattr(prices, key)
    price = getattr(price, "base", price)
    return None if price is None else float(price)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def find_prices(config: RunConfig, info: ModelInfo) -> Prices | None:
    """The price to count with: the user's own wins; None where neither it nor a list knows the model."""
    if config.price is not None:
        return OwnPrices(config.price)
    if info.provider is None or importlib.util.find_spec("genai_prices") is None:
        return None
    listed = ListedPrices(info.provider, info.priced_as or info.name)
    return listed if listed.is_known else None


def why_unpriced(info: ModelInfo) -> str:
    """Why ``find_prices`` found none, as the end of a sentence."""
    if info.provider is None:
        return f"the model {info.name!r} has no price, as it is not billed by the token"
    if importlib.util.find_spec("genai_prices") is None:
        return "the price list is not installed (pip install 'niah-kv[prices]')"
    return f"the price list knows no model {info.priced_as or info.name!r} of {info.provider!r}"
