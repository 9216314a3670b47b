"""KV settings as people write them: ``bf16,int8,int4(group_size=64),streaming(sinks=4,window=512)``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from niah import registry
from niah.errors import ConfigError, near
from niah.kv.base import SIXTEEN_BIT, KVConfig, KVPreset

Argument = int | float | str
ALIASES: Mapping[str, str] = {"fp8": "fp8_e4m3"}
# stands for the model's own 16-bit type where a list of settings is written before the model is known
REFERENCE_NAME = "reference"
_SETTING = re.compile(r"(?P<name>[\w.:+-]+)\s*(?:\((?P<arguments>.*)\))?", re.DOTALL)
_COUNTS = ("group_size", "residual", "window", "sinks", "kv_heads", "segment", "prefill_chunk", "block_size")
# fields where 0 is a value and not a mistake
_MAY_BE_ZERO = ("residual", "sinks")


def split_settings(text: str) -> list[str]:
    """The parts of a comma list; commas within parentheses do not split.

    Raises:
        ConfigError: an empty part, or parentheses that do not pair.
    """
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    if depth != 0:
        raise ConfigError(
            f"KV settings {text!r}: parentheses do not pair; write for instance 'bf16,int4(group_size=64)'."
        )
    parts.append(text[start:].strip())
    if not all(parts):
        raise ConfigError(f"KV settings {text!r}: a name is missing between commas; write for instance 'bf16,int8'.")
    return parts


def parse_kv(text: str, native_dtype: str | None = None) -> list[KVConfig]:
    """The settings of a comma list in order, each once.

    Args:
        native_dtype: the model's 16-bit type, which ``reference`` then stands for.

    Raises:
        ConfigError: an unknown name, a wrong argument, or ``reference`` without a known model.
    """
    settings: dict[str, KVConfig] = {}
    for part in split_settings(text):
        if part.lower() == REFERENCE_NAME and native_dtype is not None:
            setting = reference_for(native_dtype)
        else:
            setting = parse_one(part)
        settings.setdefault(setting.name, setting)
    return list(settings.values())


def reference_for(native_dtype: str) -> KVConfig:
    """The unquantised setting in a model's own 16-bit type, ``bf16`` or ``fp16``.

    Raises:
        ConfigError: another type.
    """
    if native_dtype not in SIXTEEN_BIT:
        raise ConfigError(f"{native_dtype!r} is no 16-bit type; the reference cache is bf16 or fp16.")
    return parse_one(native_dtype)


def parse_one(text: str) -> KVConfig:
    """One setting: a preset's name, with arguments by position or by name.

    The setting's own name is the canonical spelling: the preset's name, with the arguments that differ from their
    defaults.

    Raises:
        ConfigError: no such preset (a near one is offered), or an argument that is unknown, missing or of a wrong type.
    """
    match = _SETTING.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is not a KV setting; write a preset such as int8 or int4(group_size=64).")
    preset = _preset(match["name"])
    parameters = dict(preset.parameters or {})
    given = _arguments(preset.name, parameters, match["arguments"])
    missing = [name for name, default in parameters.items() if default is None and name not in given]
    if missing:
        example = ",".join(f"{name}=…" for name in missing)
        raise ConfigError(f"{preset.name} needs {' and '.join(missing)}; write {preset.name}({example}).")
    defaults = {name: value for name, value in parameters.items() if value is not None}
    changed = {name: given[name] for name in parameters if name in given and given[name] != defaults.get(name)}
    setting = preset.make(**{**defaults, **given})
    _check_counts(setting, text)
    return replace(setting, name=_canonical(preset.name, changed))


def _preset(name: str) -> KVPreset:
    wanted = ALIASES.get(name.lower(), name)
    known = registry.names("kv")
    # names are matched without regard to case: INT8 is what people see in papers
    wanted = next((option for option in known if option.lower() == wanted.lower()), wanted)
    if wanted not in known:
        raise ConfigError(f"no KV setting named {name!r}.{near(name, [*known, *ALIASES])}")
    preset = registry.load("kv", wanted)
    if not isinstance(preset, KVPreset):
        raise ConfigError(f"the KV setting {wanted!r} is a {type(preset).__name__}; its PLUGIN must be a KVPreset.")
    return preset


def _arguments(preset: str, parameters: Mapping[str, Argument | None], text: str | None) -> dict[str, Argument]:
    """Arguments by name, converted to the type of their default."""
    given: dict[str, Argument] = {}
    if text is None or not text.strip():
        return given
    order = list(parameters)
    for position, part in enumerate(split_settings(text)):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            if any("=" in earlier for earlier in split_settings(text)[:position]):
                raise ConfigError(f"{preset}({text}): {part!r} stands after a named argument; give it a name too.")
            if position >= len(order):
                raise ConfigError(f"{preset}({text}): {_takes(preset, order)}, so {part!r} has no place; leave it out.")
            name, value = order[position], part
        if name not in parameters:
            raise ConfigError(f"{preset}({text}): no argument {name!r}; {_takes(preset, order)}.{near(name, order)}")
        if name in given:
            raise ConfigError(f"{preset}({text}): {name} is given twice; leave one out.")
        given[name] = _convert(preset, name, value, parameters[name])
    return given


def _takes(preset: str, order: Sequence[str]) -> str:
    return f"{preset} takes {', '.join(order)}" if order else f"{preset} takes no arguments"


def _convert(preset: str, name: str, text: str, default: Argument | None) -> Argument:
    kinds: tuple[type[int] | type[float] | type[str], ...] = (int, float, str) if default is None else (type(default),)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    wanted = "a whole number" if kinds == (int,) else "a number"
    raise ConfigError(f"{preset}: {name} is {text!r}; give {wanted}, for instance {name}={default}.")


def _check_counts(setting: KVConfig, text: str) -> None:
    """Required arguments have no default to take a type from, so the finished setting is looked at."""
    for field in _COUNTS:
        value = getattr(setting, field)
        least = 0 if field in _MAY_BE_ZERO else 1
        if value is None and field not in _MAY_BE_ZERO:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{text!r}: {field} is {value!r}; give a whole number of at least {least}.")


def _canonical(name: str, changed: Mapping[str, Argument]) -> str:
    if not changed:
        return name
    return f"{name}({','.join(f'{key}={value}' for key, value in changed.items())})"
