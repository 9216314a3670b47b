"""Parser of KV settings: ``bf16,int4(group_size=64),k8v4+window(1024),gqa(1)+int8+skip(0,-1)``.

A comma divides settings, ``+`` joins the parts of one. Which parts can be combined is decided in ``combine``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from niah import registry
from niah.errors import ConfigError, near
from niah.kv.aspects import Part, check_combination, combine
from niah.kv.config import KVConfig
from niah.kv.formats import SIXTEEN_BIT, Plain
from niah.kv.preset import KVPreset

Argument = int | float | str
ALIASES: Mapping[str, str] = {"fp8": "fp8_e4m3", "f16": "fp16"}
# stands for the model's own 16-bit type where a list of settings is written before the model is known
REFERENCE_NAME = "reference"
_REFERENCE = KVConfig(REFERENCE_NAME, Plain("auto"), Plain("auto"))
_SETTING = re.compile(r"(?P<name>[\w.:+-]+)\s*(?:\((?P<arguments>.*)\))?", re.DOTALL)


def split_settings(text: str, at: str = ",") -> list[str]:
    """The parts of a list, divided by commas or by another sign; those within parentheses do not split.

    Raises:
        ConfigError: an empty part, or parentheses that do not pair.
    """
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == at and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    if depth != 0:
        raise ConfigError(
            f"KV settings {text!r}: parentheses do not pair; write for instance 'bf16,int4(group_size=64)'."
        )
    parts.append(text[start:].strip())
    if not all(parts):
        where, example = ("between commas", "bf16,int8") if at == "," else (f"beside the {at}", f"int8{at}skip(0,-1)")
        raise ConfigError(f"KV settings {text!r}: a name is missing {where}; write for instance {example!r}.")
    return parts


def parse_kv(
    text: str | Sequence[str | KVConfig], native_dtype: str | None = None, also: Sequence[Part] = ()
) -> list[KVConfig]:
    """The settings of a comma list, or of a list, in order and each once; values are taken as they are.

    Args:
        native_dtype: the model's 16-bit type, which ``reference`` then stands for; None leaves it open.
        also: parts that are added to every setting, or are the only setting where there is none.

    Raises:
        ConfigError: an unknown name, a wrong argument, or parts that do not go together.
    """
    settings: dict[str, KVConfig] = {}
    for one in split_settings(text) if isinstance(text, str) else text:
        setting = one if isinstance(one, KVConfig) else parse_one(one, native_dtype, also)
        settings.setdefault(setting.name, setting)
    if not settings and also:
        return [combine(also)]
    return list(settings.values())


def reference_for(native_dtype: str) -> KVConfig:
    """The unquantized setting in a model's own 16-bit type, ``bf16`` or ``fp16``.

    Raises:
        ConfigError: another type.
    """
    if native_dtype not in SIXTEEN_BIT:
        raise ConfigError(f"{native_dtype!r} is no 16-bit type; the reference cache is bf16 or fp16.")
    return KVConfig(native_dtype, Plain(native_dtype), Plain(native_dtype))


def resolved(setting: KVConfig, native_dtype: str | None) -> KVConfig:
    """Replace ``reference`` by the setting of the model's own 16-bit type.

    Raises:
        ConfigError: it does, and the model's type is not known.
    """
    names = setting.name.split("+")
    if REFERENCE_NAME not in names:
        return setting
    if native_dtype is None:
        raise ConfigError("kv 'reference' is a model's own 16-bit cache, and this model shows none; name a setting.")
    own = reference_for(native_dtype)
    name = "+".join(own.name if part == REFERENCE_NAME else part for part in names)
    return replace(setting, name=name, keys=own.keys, values=own.values)


def parse_one(text: str, native_dtype: str | None = None, also: Sequence[Part] = ()) -> KVConfig:
    """One setting: a preset's name, with arguments by position or by name, or several of them joined by ``+``.

    The setting's own name is the canonical spelling: the presets' names in a fixed order, with the arguments that
    differ from their defaults.

    Args:
        native_dtype: the model's 16-bit type, which ``reference`` then stands for; None leaves it open.
        also: further parts.

    Raises:
        ConfigError: no such preset (a near one is offered), an argument that is unknown, missing or of a wrong type,
            or parts that do not go together.
    """
    parts = [*(_part(part, native_dtype) for part in split_settings(text, "+")), *also]
    if len(parts) > 1:
        return combine(parts)
    check_combination(parts[0].setting)
    return parts[0].setting


def part(preset: str, **arguments: Argument) -> Part:
    """A part of a setting from values: ``part("window", size=512)``.

    Raises:
        ConfigError: no such preset, or an argument that it does not take.
    """
    found = registry.load("kv", preset)
    return Part.of(_with_arguments(found, arguments))


def _part(text: str, native_dtype: str | None) -> Part:
    match = _SETTING.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is not a KV setting; write a preset such as int8 or int4(group_size=64).")
    name = match["name"]
    if name.lower() == REFERENCE_NAME:
        reference = _REFERENCE if native_dtype is None else reference_for(native_dtype)
        return Part.of(reference, is_plain_type=True)
    preset = _preset(name)
    setting = _open_list(preset, match["arguments"]) if preset.rest else _made(preset, match["arguments"])
    return Part.of(setting, is_plain_type=not preset.parameters and not preset.rest)


def _made(preset: KVPreset, text: str | None) -> KVConfig:
    return _with_arguments(preset, _arguments(preset.name, preset.parameters or {}, text))


def _with_arguments(preset: KVPreset, given: Mapping[str, Argument]) -> KVConfig:
    parameters = preset.parameters or {}
    missing = [name for name, default in parameters.items() if default is None and name not in given]
    if missing:
        example = ",".join(f"{name}=…" for name in missing)
        raise ConfigError(f"{preset.name} needs {' and '.join(missing)}; write {preset.name}({example}).")
    defaults = {name: value for name, value in parameters.items() if value is not None}
    changed = {name: given[name] for name in parameters if name in given and given[name] != defaults.get(name)}
    return replace(preset.make(**{**defaults, **given}), name=_canonical(preset.name, changed))


def _open_list(preset: KVPreset, text: str | None) -> KVConfig:
    """A preset whose arguments are a list of whole numbers and words, each named once in the setting's own name."""
    if text is None or not text.strip():
        raise ConfigError(f"{preset.name} needs {preset.rest}; write for instance {preset.example}.")
    values: list[int | str] = []
    for part in split_settings(text):
        if "=" in part:
            raise ConfigError(f"{preset.name}({text}): {preset.rest} have no names; write {preset.example}.")
        value = int(part) if re.fullmatch(r"[+-]?\d{1,18}", part) else part
        if value not in values:
            values.append(value)
    return replace(preset.make(*values), name=f"{preset.name}({','.join(map(str, values))})")


def _preset(name: str) -> KVPreset:
    wanted = ALIASES.get(name.lower(), name)
    known = registry.names("kv")
    # INT8 is what people see in papers, tq-k8v4 what files cannot be called
    wanted = next((option for option in known if _plain(option) == _plain(wanted)), wanted)
    if wanted not in known:
        raise ConfigError(f"no KV setting named {name!r}.{near(name, [*known, *ALIASES])}")
    preset = registry.load("kv", wanted)
    if not isinstance(preset, KVPreset):
        raise ConfigError(f"the KV setting {wanted!r} is a {type(preset).__name__}; its PLUGIN must be a KVPreset.")
    return preset


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


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


def _canonical(name: str, changed: Mapping[str, Argument]) -> str:
    if not changed:
        return name
    return f"{name}({','.join(f'{key}={value}' for key, value in changed.items())})"
