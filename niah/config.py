"""``RunConfig``: the configuration of a run. YAML < environment < flags < ``--set``; unknown keys are errors."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from niah import registry
from niah.errors import ConfigError, near
from niah.kv.config import KVConfig
from niah.kv.grammar import parse_kv
from niah.limited_yaml import read_yaml
from niah.paths import as_path
from niah.redact import looks_like_key

SECRET_WORDS = ("api_key", "apikey", "token", "secret", "password", "authorization")
DEFAULT_LENGTHS = "512,1k,2k"
DEFAULT_DEPTHS = "5"
# most trials of a cell under --trials auto
AUTO_MOST_TRIALS = 64


MOST_TRIALS = 10_000
_TRIALS_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_TRIALS},
        {"type": "string", "pattern": "^auto(:[0-9]+)?$"},
    ]
}


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_booleans(cls, value: object, info: ValidationInfo) -> object:
        """Refuse booleans for numbers: ``trials: yes`` would count as 1."""
        annotation = cls.model_fields[str(info.field_name)].annotation
        kinds = get_args(annotation) or (annotation,)
        if isinstance(value, bool) and bool not in kinds and (int in kinds or float in kinds):
            raise ValueError("a number is needed, and YAML reads yes, no, on and off as true and false")
        return value


class Named(_Section):
    """A plugin by name with its own options, which the plugin itself validates.

    Attributes:
        argument: what follows the name, for sources that read something (``text``: a path, ``hf``: a data set).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    argument: str = ""
    options: dict[str, Any] = Field(default_factory=dict)


class GridConfig(_Section):
    """The grid. Lengths and depths stay as written; ``niah.grid`` reads them.

    Attributes:
        trials: texts and needles per cell; with ``auto_trials`` the most that a cell may get.
        auto_trials: spend trials until every verdict is settled; ``trials: auto`` and ``trials: auto:32`` set both.
    """

    lengths: str = DEFAULT_LENGTHS
    depths: str = DEFAULT_DEPTHS
    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS), WithJsonSchema(_TRIALS_SCHEMA)] = 2
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    auto_trials: bool = False

    @model_validator(mode="before")
    @classmethod
    def _auto(cls, data: object) -> object:
        """``trials: auto`` and ``trials: auto:MOST`` to a number and a flag."""
        if isinstance(data, dict) and isinstance(data.get("trials"), str):
            word, colon, most = data["trials"].strip().partition(":")
            if word == "auto":
                return {**data, "trials": most if colon else AUTO_MOST_TRIALS, "auto_trials": True}
        return data

    @field_validator("lengths", "depths", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """Accept a list or a number from YAML where the command line gives text."""
        if isinstance(value, list | tuple):
            return ",".join(str(v) for v in value)
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class PriceConfig(_Section):
    """The user's own price, in US dollars per million tokens.

    Attributes:
        cached_usd, written_usd: prompt tokens read from and written to a provider's prefix cache; None is
            ``input_usd``.
        batch_factor: what a batch costs of the full price.
    """

    input_usd: float = Field(ge=0, allow_inf_nan=False)
    output_usd: float = Field(ge=0, allow_inf_nan=False)
    cached_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    written_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    batch_factor: float = Field(default=0.5, gt=0, le=1)


MOST_SHARDS = 10_000


def parse_shard(text: str) -> tuple[int, int]:
    """``I/N`` as two numbers, 1 ≤ I ≤ N.

    Raises:
        ValueError: it is something else.
    """
    index, slash, count = text.partition("/")
    if not slash or not (index.isascii() and index.isdigit() and count.isascii() and count.isdigit()):
        raise ValueError("a shard is written I/N, such as 1/4")
    if not 1 <= int(index) <= int(count) <= MOST_SHARDS:
        raise ValueError(f"of a shard I/N, I goes from 1 to N, and N to {MOST_SHARDS:,}")
    return int(index), int(count)


KVSetting = Annotated[
    InstanceOf[KVConfig],
    PlainSerializer(lambda setting: setting.name, return_type=str),
    WithJsonSchema({"type": "string", "description": "a KV setting, such as int8 or k8v4+window(1024)"}),
]


class RunConfig(_Section):
    """Configuration of a run.

    Attributes:
        model: alias, folder or hub id; None is the backend's default.
        kv: settings, parsed here and nowhere else; None is the backend's default.
        reference: whether the model's own 16-bit cache is added.
        answer_budget: least tokens that an answer may take.
        reuse: ``on``, ``off``, or ``verify``: a sample is asked both ways and compared.
        max_minutes: stop cleanly after this time.
        difficulty: ``auto`` lets a probe of the reference choose the task's rung, so that it is neither easy nor
            hopeless.
        max_cost, max_tokens: stop cleanly before the run as a whole, earlier parts included, has cost this many US
            dollars, or has taken this many prompt and output tokens.
        price: the user's own price; None looks the model up in a public list.
        cache: folder of answers that are kept across runs; None keeps none.
        batch: hand the cells in as batches, which some services answer within a day and at a lower price.
        shard: ``I/N``: only the I-th of N parts of the grid, for job arrays; ``niah merge`` puts them together.
        plugins: Python files with further plugins, loaded for this run.
    """

    backend: Named = Named(name="transformers")
    model: str | None = Field(default=None, min_length=1)
    kv: tuple[KVSetting, ...] | None = None
    reference: bool = True
    task: Named = Named(name="multikey")
    haystack: Named = Named(name="chronicle")
    grid: GridConfig = GridConfig()
    answer_budget: int = Field(default=24, ge=1, le=100_000)
    reuse: Literal["on", "off", "verify"] = "on"
    out: str = "results"
    max_minutes: float | None = Field(default=None, gt=0)
    difficulty: Literal["auto"] | None = None
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, gt=0)
    price: PriceConfig | None = None
    cache: str | None = None
    batch: bool = False
    shard: str | None = None
    plugins: tuple[str, ...] = ()

    @field_validator("kv", mode="before")
    @classmethod
    def _parse_settings(cls, value: object) -> object:
        """Parse the settings; refuse what YAML does not read as text, such as a bare on, 8 or 2026-01-01."""
        asked = split_list(value) if isinstance(value, str) else value
        if asked is None:
            return None
        if not isinstance(asked, list | tuple | set) or not all(isinstance(one, str | KVConfig) for one in asked):
            raise ValueError("write names, such as int8 or [int8, int4]")
        return tuple(parse_kv(list(asked)))

    @field_validator("shard")
    @classmethod
    def _is_shard(cls, value: str | None) -> str | None:
        if value is not None:
            parse_shard(value)
        return value

    @field_validator("reuse", mode="before")
    @classmethod
    def _reuse(cls, value: object) -> object:
        """Accept true and false, as which YAML reads a bare on or off."""
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value

    def to_json(self) -> dict[str, Any]:
        """What was asked, as JSON."""
        return json.loads(self.model_dump_json())  # type: ignore[no-any-return]


_NAMED = ("backend", "task", "haystack")
# keys of the grid that may stand alone
GRID_KEYS = ("lengths", "depths", "trials", "seed")
M = TypeVar("M", bound=BaseModel)


def load_yaml(path: Path) -> dict[str, Any]:
    """A YAML file as a nested mapping, names and options of plugins sorted out.

    Raises:
        ConfigError: not readable, not YAML, not a mapping, or it holds a key that looks like a secret.
    """
    try:
        raw = path.read_bytes()
        # an editor that writes two bytes a character says so by a mark
        text = raw.decode("utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    except OSError as err:
        raise ConfigError(f"cannot read the config file {str(path)!r}: {err}.") from err
    except UnicodeDecodeError as err:
        raise ConfigError(
            f"cannot read the config file {str(path)!r}: it is not UTF-8 at byte {err.start}. Save it as UTF-8 text."
        ) from err
    try:
        data = read_yaml(text)
    except ConfigError as err:
        raise ConfigError(f"cannot read the config file {str(path)!r}: {err}.") from err
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{str(path)!r} must hold a mapping such as 'model: smollm2', not {type(data).__name__}.")
    _refuse_secrets(data, str(path), "")
    return normalize({str(k): v for k, v in data.items()})


def _refuse_secrets(data: Any, where: str, prefix: str) -> None:
    """Refuse keys that look like secrets at any depth: a config is stored, shown and shared."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            name = str(key).lower().replace("-", "_")
            if any(name == word or name.endswith(f"_{word}") for word in SECRET_WORDS):
                raise ConfigError(
                    f"{where}: {prefix}{key} looks like a key. Keys come from the environment or .env only."
                )
            _refuse_secrets(value, where, f"{prefix}{key}.")
    elif isinstance(data, list | tuple):
        for position, value in enumerate(data):
            _refuse_secrets(value, where, f"{prefix}{position}.")
    elif isinstance(data, str) and looks_like_key(data):
        what = prefix.removesuffix(".") or "a value"
        raise ConfigError(f"{where}: {what} holds a key. Keys come from the environment or .env only.")


def normalize(data: Mapping[str, Any]) -> dict[str, Any]:
    """Short forms to full ones: ``backend: oracle``, ``backend: {name: oracle, window: 8}``, ``kv: bf16,int8``.

    ``lengths``, ``depths``, ``trials`` and ``seed`` go to the grid, as flags do; ``plugins`` may be one file.

    Raises:
        ConfigError: one of them is given at both places, or a section is neither a name nor a mapping.
    """
    out: dict[str, Any] = {}
    for key, value in data.items():
        if key in _NAMED:
            out[key] = _named(key, value)
        elif key == "kv" and isinstance(value, str):
            out[key] = split_list(value)
        elif key == "plugins":
            out[key] = plugin_files(value)
        elif key not in GRID_KEYS:
            out[key] = value
    grid = {key: data[key] for key in GRID_KEYS if key in data}
    given = data.get("grid") or {}
    if grid and isinstance(given, Mapping):
        twice = [key for key in grid if key in given]
        if twice:
            raise ConfigError(f"{twice[0]} is given twice: alone and as grid.{twice[0]}; leave one out.")
        out["grid"] = {**given, **grid}
    return out


def plugin_files(value: Any) -> list[str]:
    """``plugins`` of a config: a file, or a list of files.

    Raises:
        ConfigError: it is something else.
    """
    files = [value] if isinstance(value, str | Path) else value
    if not isinstance(files, list | tuple) or not all(isinstance(file, str | Path) for file in files):
        raise ConfigError(f"plugins must be a list of Python files, such as [my_task.py], not {_short(value)}.")
    return [str(file) for file in files]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _named(section: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return named_from_text(section, value)
    if not isinstance(value, dict):
        raise ConfigError(f"{section} must be a name or a mapping with 'name', not {type(value).__name__}.")
    rest = {str(k): v for k, v in value.items()}
    given = rest.pop("name", None)
    head: dict[str, Any] = {} if given is None else {"name": str(given)}
    if "argument" in rest:
        head["argument"] = str(rest.pop("argument"))
    elif given is not None:
        head = named_from_text(section, str(given))
    inner = rest.pop("options", None) or {}
    if not isinstance(inner, dict):
        raise ConfigError(f"{section}.options must be a mapping, not {inner!r}.")
    options = {**inner, **rest}
    return {**head, "options": options} if options else head


def named_from_text(section: str, text: str) -> dict[str, Any]:
    """``hf:org/name``, ``NAME:ARGUMENT`` and paths for the haystack; a plain name elsewhere."""
    if section != "haystack":
        return {"name": text}
    if text in registry.names("haystacks"):
        return {"name": text}  # a folder of that name is meant by ./name
    kind, colon, rest = text.partition(":")
    if colon and kind in registry.names("haystacks"):
        return {"name": kind, "argument": rest}
    looks_like_path = text == "-" or any(c in text for c in "/\\*?[") or text.startswith((".", "~"))
    if looks_like_path or Path(text).suffix or as_path(text).exists():
        return {"name": "text", "argument": text}
    return {"name": text}


def split_list(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth <= 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return [p.strip() for p in (*parts, current) if p.strip()]


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Deep merge, later layers win; a new plugin name drops the options of the old one."""
    out: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = out.get(key)
            if isinstance(old, dict) and isinstance(value, Mapping):
                changed = key in _NAMED and "name" in value and value["name"] != old.get("name", value["name"])
                out[key] = merge({} if changed else old, value)
            else:
                out[key] = dict(value) if isinstance(value, Mapping) else value
    return out


def apply_sets(data: dict[str, Any], sets: Sequence[str]) -> dict[str, Any]:
    """``--set a.b=c``: values are YAML; ``backend.x``, ``task.x`` and ``haystack.x`` go to the plugin's options.

    Raises:
        ConfigError: no ``=``, an empty key, or a path through something that is no mapping.
    """
    for item in sets:
        path, equals, raw = item.partition("=")
        keys = [k for k in path.strip().split(".") if k]
        if not equals or not keys:
            raise ConfigError(f"--set {item!r} must look like a.b=c, for instance --set backend.threads=2.")
        _refuse_secrets({keys[-1]: raw}, "--set", ".".join(keys[:-1]) + "." if keys[:-1] else "")
        if keys[0] in GRID_KEYS:
            keys.insert(0, "grid")
        if keys[0] in _NAMED and len(keys) > 1 and keys[1] not in ("name", "argument", "options"):
            keys.insert(1, "options")
        try:
            value = read_yaml(raw)
        except ConfigError as err:
            raise ConfigError(f"--set {_short(item)}: {err}.") from err
        if keys == ["kv"] and isinstance(value, str):
            value = split_list(value)
        elif keys == ["plugins"]:
            value = plugin_files(value)
        layer: dict[str, Any] = {}
        inner = layer
        for key in keys[:-1]:
            inner[key] = {}
            inner = inner[key]
        inner[keys[-1]] = value
        data = merge(data, normalize(layer) if keys[0] in _NAMED and len(keys) == 1 else layer)
    return data


def build_config(data: Mapping[str, Any]) -> RunConfig:
    """Validate; every complaint becomes one sentence.

    Raises:
        ConfigError: unknown key (a near one is offered), or a value of the wrong kind.
    """
    filled = dict(data)
    for section in _NAMED:
        part = filled.get(section)
        if isinstance(part, Mapping) and "name" not in part:
            # options without a name belong to the default plugin
            filled[section] = {"name": RunConfig.model_fields[section].default.name, **part}
    return validate(RunConfig, filled, "config")


def validate(model: type[M], data: Mapping[str, Any], where: str) -> M:
    """Validate ``data`` as ``model`` with errors as ``ConfigError``."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as err:
        raise ConfigError(_sentence(model, err, where)) from err


def _sentence(model: type[BaseModel], err: ValidationError, where: str) -> str:
    # an unknown key is often a misspelling of the missing one, so it is reported first
    first = min(err.errors(), key=lambda error: error["type"] != "extra_forbidden")
    keys = [str(k) for k in first["loc"]]
    path = ".".join([where, *keys]) if where != "config" else ".".join(keys)
    if first["type"] == "extra_forbidden":
        fields = _fields_at(model, keys[:-1])
        return f"unknown key {path!r}.{near(keys[-1], fields)}"
    if first["type"] == "missing":
        return f"{path} is missing."
    value = first.get("input")
    reason = first["msg"].removeprefix("Value error, ")
    return f"{path} cannot be {_short(value)}: {reason[0].lower()}{reason[1:]}."


def _fields_at(model: type[BaseModel], keys: Sequence[str]) -> list[str]:
    fields = model.model_fields
    for key in keys:
        annotation = fields[key].annotation if key in fields else None
        sections = [part for part in (annotation, *get_args(annotation)) if isinstance(part, type)]
        inner = next((part for part in sections if issubclass(part, BaseModel)), None)
        if inner is None:
            return []
        fields = inner.model_fields
    return list(fields)
