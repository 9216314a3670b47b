"""``niah schema``: JSON Schemas of a config file and of a row."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def schema(what: Annotated[str, typer.Argument(help="config or row.")]) -> None:
    """Print the JSON Schema of a config file (for editors) or of a line of rows.jsonl."""
    from niah.config import RunConfig
    from niah.errors import ConfigError, near
    from niah.store.schema import row_json_schema

    makers = {"config": RunConfig.model_json_schema, "row": row_json_schema}
    if what not in makers:
        raise ConfigError(f"no schema named {what!r}.{near(what, makers)}")
    typer.echo(json.dumps(makers[what](), indent=2))
