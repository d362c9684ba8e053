"""JSON documents: files that commands send, and values that they print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import typer

from privypurse.cli.service import fail


def read_object(file: Path, *required: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input for ``-``.

    Ends the command with status 2 if the file cannot be read, is not JSON, or lacks a member.
    """
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
        document = json.loads(text)
    except OSError as error:
        fail(f"{file}: {error.strerror}", 2)
    except (ValueError, RecursionError) as error:
        fail(f"{file}: not JSON: {error}", 2)
    if not isinstance(document, dict):
        fail(f"{file}: not a JSON object", 2)
    if missing := [name for name in required if name not in document]:
        fail(f"{file}: lacks {', '.join(missing)}", 2)
    return document


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
