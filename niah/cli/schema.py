"""``niah schema``: JSON Schemas of a config file and of a row."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def schema(
    what: Annotated[str, typer.Argument(help="config or row.")],
    as_json: Annotated[bool, typer.Option("--json", help="On one line.")] = False,
) -> None:
    """Print the JSON Schema of a config file (for editors) or of a line of rows.jsonl."""
    from niah.errors import ConfigError, near
    from niah.store.schema import row_json_schema

    makers = {"config": config_schema, "row": row_json_schema}
    if what not in makers:
        raise ConfigError(f"no schema named {what!r}.{near(what, makers)}")
    typer.echo(json.dumps(makers[what](), indent=None if as_json else 2))


def config_schema() -> dict[str, Any]:
    """The schema of a YAML file, with the short forms that it may use: names as text, options beside the name."""
    from niah.config import RunConfig

    schema: dict[str, Any] = RunConfig.model_json_schema()
    properties = schema["properties"]
    for section in ("backend", "task", "haystack"):
        open_form = {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": True}
        properties[section] = {"anyOf": [{"type": "string"}, open_form], "title": section}
    properties["kv"] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}], "title": "kv"}
    grid = schema["$defs"]["GridConfig"]["properties"]
    for name in ("lengths", "depths"):
        numbers = {"type": "array", "items": {"type": ["string", "number"]}}
        grid[name] = {"anyOf": [{"type": "string"}, {"type": "number"}, numbers], "title": name}
    return schema
