"""The query of a form as a program: a curl command, and Python with the client package."""

import json
import pprint
import shlex
from collections.abc import Mapping
from typing import Any

from app.queries import QUERY_KINDS


def curl(base: str, request: Mapping[str, Any], key: str) -> str:
    """A curl command; its idempotency key makes repetitions return the same answer, free."""
    body = json.dumps(request, ensure_ascii=False)
    lines = [
        f"curl -sS {base}/v1/queries",
        '-H "Authorization: Bearer $KEY"',
        '-H "Content-Type: application/json"',
        f'-H "Idempotency-Key: {key}"',
        f"-d {shlex.quote(body)}",
    ]
    return " \\\n  ".join(lines)


def python(base: str, request: Mapping[str, Any], key: str) -> str:
    """A Python program that sends the query with the package ``privypurse``."""
    query = dict(request["query"])
    kind = query.pop("kind")
    first = [query.pop(name) for name in QUERY_KINDS[kind].arguments if name in query]
    arguments = [repr(request["dataset"]), *map(_literal, first)]
    amount = "epsilon" if "epsilon" in request else "rho"
    arguments += [f"{amount}={request[amount]!r}", f"key={key!r}"]
    arguments += [f"{name}={_literal(value)}" for name, value in query.items()]
    call = f"purse.{kind}(\n    " + ",\n    ".join(arguments) + ",\n)"
    return (
        "import os\n\nfrom privypurse import PrivyPurse\n\n"
        f'purse = PrivyPurse({base!r}, os.environ["KEY"])\n'
        f"answer = {call}\nprint(answer)"
    )


def _literal(value: Any) -> str:
    return pprint.pformat(value, sort_dicts=False, width=72).replace("\n", "\n    ")
