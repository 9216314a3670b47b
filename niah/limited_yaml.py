"""YAML with limits: no key twice, and nothing that is small in a file and endless in memory."""

from __future__ import annotations

import re
from typing import Any

import yaml

from niah.errors import ConfigError

MOST_CHARS = 1_000_000
MOST_DEPTH = 40
# values of a document with its aliases written out
MOST_VALUES = 20_000
MOST_INT = 2**63 - 1
_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
# whole numbers that YAML 1.1 reads otherwise than people: 0777 is 511 to it, and 12:30 is 750
_OTHERWISE = re.compile(r"[-+]?(?:0[0-7_]+|[0-9][0-9_]*(?::[0-9.]*)+)")


class _Limited(yaml.SafeLoader):
    """The safe loader, which also counts how deep it is and refuses a key that is given twice."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ConfigError("its brackets are nested too deeply")
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        if node.tag in _NUMBERS and isinstance(value, str) and _OTHERWISE.fullmatch(value):
            line = node.start_mark.line + 1
            raise ConfigError(
                f"YAML reads {_short(value)} in line {line} as another number: leave leading zeros and colons out, or "
                "put it in quotes"
            )
        return value

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            line = key.start_mark.line + 1
            if key.value in seen:
                raise ConfigError(f"the key {_short(key.value)} is given twice, in lines {seen[key.value]} and {line}")
            seen[key.value] = line
        return node


def read_yaml(text: str) -> Any:
    """The value of a YAML text.

    Raises:
        ConfigError: not YAML; a key given twice; nested deeper than 40; over a million characters, or 20,000 values
            with aliases written out; an alias inside of what it stands for; a whole number beyond 64 bits, or one
            that YAML reads otherwise than it is written. The message is a reason without its end.
    """
    if len(text) > MOST_CHARS:
        raise ConfigError(f"it has {len(text):,} characters, and a config has at most {MOST_CHARS:,}")
    loader: _Limited | None = None
    try:
        loader = _Limited(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {}, set())
        value = loader.construct_document(node)
    except yaml.YAMLError as err:
        raise ConfigError(f"it is not valid YAML: {' '.join(str(err).split())}") from err
    except (ValueError, TypeError, OverflowError, RecursionError, AttributeError, KeyError) as err:
        # a number with thousands of digits, a date in a thirteenth month, a tag that its value does not fit
        raise ConfigError(f"a value in it cannot be read: {' '.join(str(err).split())[:200]}") from err
    finally:
        if loader is not None:
            loader.dispose()
    _check_numbers(value)
    return value


def _count(node: Any, sizes: dict[int, int], inside: set[int]) -> int:
    """Values under a node with aliases written out; each node is looked at once."""
    if id(node) in inside:
        raise ConfigError("an alias in it stands inside of what it stands for")
    if id(node) in sizes:
        return sizes[id(node)]
    if isinstance(node, yaml.MappingNode):
        children = [part for pair in node.value for part in pair]
    else:
        children = list(node.value) if isinstance(node, yaml.SequenceNode) else []
    inside.add(id(node))
    size = 1 + sum(_count(child, sizes, inside) for child in children)
    inside.discard(id(node))
    if size > MOST_VALUES:
        raise ConfigError(f"it holds over {MOST_VALUES:,} values when its aliases are written out")
    sizes[id(node)] = size
    return size


def _check_numbers(value: Any) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_numbers(key)
            _check_numbers(inner)
    elif isinstance(value, (list, tuple, set)):
        for inner in value:
            _check_numbers(inner)
    elif isinstance(value, int) and not -MOST_INT <= value <= MOST_INT:
        raise ConfigError("it holds a whole number beyond 64 bits")


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
