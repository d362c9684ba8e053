"""The import table, and how one source file is held against it.

Imports point one way: app → storage → mechanisms → accounting. What stands left may use what
stands right, never the other way; ``mechanisms`` is pure, and SQL lives in ``storage`` alone. The
client stands apart: neither it nor the service knows anything of the other.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("accounting", "mechanisms", "storage", "app", "privypurse")
#: The folder of each package that does not lie at the root of the repository under its own name.
FOLDERS = {"privypurse": "client/privypurse"}


#: Third-party packages that only the extras ``cluster`` and ``s3`` install. In the package ``app``,
#: only ``app.cluster`` may import any of them, namely ``dask`` and ``distributed``.
OPTIONAL = frozenset({"dask", "distributed", "s3fs"})


def declared() -> frozenset[str]:
    """Import names of what the service is installed with; test tools are not among them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    entries = project["dependencies"] + optional["cluster"] + optional["s3"]
    names = (re.split(r"[^\w-]", entry)[0] for entry in entries)
    # ``renamed`` are import names that differ from the name of their package. ``parts`` are
    # packages that fastapi, pydantic, jinja2 and mcp install.
    renamed = {"jwt", "markdown_it"}
    parts = {"starlette", "pydantic_core", "annotated_types", "markupsafe", "httpx2"}
    return frozenset(name.replace("-", "_") for name in names) | renamed | parts


DECLARED = declared()


@dataclass(frozen=True)
class Rule:
    """What the modules below one package may import and name."""

    package: str
    internal: frozenset[str]
    #: The third-party packages that ``package`` may import; None allows all packages that the
    #: project declares.
    third_party: frozenset[str] | None
    forbidden: frozenset[str] = frozenset()


#: Modules that pure code must not import: clocks, settings, logs, databases, networks and global
#: random state.
IMPURE = frozenset(
    {
        "asyncio",
        "datetime",
        "http",
        "logging",
        "os.environ",
        "os.environb",
        "os.getenv",
        "random",
        "sched",
        "signal",
        "smtplib",
        "socket",
        "socketserver",
        "sqlite3",
        "ssl",
        "subprocess",
        "time",
        "urllib",
        "numpy.random",
        "scipy.stats",
    }
)
SQL_MODULES = frozenset({"sqlalchemy", "alembic", "psycopg", "sqlite3"})

RULES = (
    Rule(
        # Query code reads no clock, setting or network. These modules of ``app.contract`` do not
        # either, so query code may import them.
        "app.queries",
        frozenset(
            {
                "app.queries",
                "app.contract.amounts",
                "app.contract.datasets",
                "app.contract.models",
                "mechanisms",
                "accounting",
            }
        ),
        frozenset({"pydantic", "annotated_types"}),
        SQL_MODULES | IMPURE,
    ),
    Rule("app.cluster", frozenset(PACKAGES) - {"privypurse"}, None, SQL_MODULES | {"s3fs"}),
    Rule("app", frozenset(PACKAGES) - {"privypurse"}, None, SQL_MODULES | OPTIONAL),
    Rule(
        "storage",
        frozenset({"storage", "mechanisms", "accounting"}),
        frozenset({"sqlalchemy", "alembic", "psycopg", "pyarrow", "numpy", "networkx", "s3fs"}),
    ),
    Rule(
        "mechanisms",
        frozenset({"mechanisms", "accounting"}),
        frozenset({"numpy", "numba", "scipy", "networkx", "cryptography", "mpmath"}),
        IMPURE,
    ),
    Rule("accounting", frozenset({"accounting"}), frozenset(), IMPURE),
    # The bridge of `privypurse mcp` is loaded by this command alone, with the packages of the extra
    # `mcp`.
    Rule(
        "privypurse.cli.bridge",
        frozenset({"privypurse"}),
        frozenset({"mcp", "httpx2"}),
        SQL_MODULES,
    ),
    # Only the command line of the client may import typer: the library must load without it.
    Rule(
        "privypurse.cli",
        frozenset({"privypurse"}),
        frozenset({"httpx", "numpy", "typer"}),
        SQL_MODULES,
    ),
    # ``privypurse.workshop`` drafts descriptions of tables on the owner's machine, also of tables
    # in databases. It imports a database driver only when that driver is needed.
    Rule(
        "privypurse.workshop",
        frozenset({"privypurse"}),
        frozenset(),
        frozenset({"privypurse.cli", "privypurse.client", "privypurse.connection", "httpx"}),
    ),
    # The client can be installed without the service. It uses NumPy and Arrow only if they are
    # installed.
    Rule(
        "privypurse",
        frozenset({"privypurse"}),
        frozenset({"httpx", "numpy", "pyarrow", "cryptography"}),
        SQL_MODULES | {"privypurse.cli"},
    ),
)

#: The files that may print, because they make text for a person at a terminal.
MAY_PRINT = re.compile(r"^(app/cli/|app/check\.py|app/demo/|benchmarks/)")

SQL_TEXT = re.compile(
    r"^\s*(SELECT\s.*\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s|PRAGMA\s"
    r"|BEGIN\s+IMMEDIATE|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|TRIGGER)\s)"
    r"|^\s*(select\s.*\sfrom\s.*\swhere\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s)",
    re.DOTALL,
)


def rule_of(module: str) -> Rule:
    """The narrowest rule that covers a dotted module name."""
    return next(r for r in RULES if _within(module, {r.package}))


def sources() -> list[Path]:
    """Every module of the packages, relative to the project's root."""
    folders = (ROOT / FOLDERS.get(package, package) for package in PACKAGES)
    paths = (path for folder in folders for path in folder.rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in paths)


def violations(path: Path, source: str) -> list[str]:
    """What the module at ``path`` (relative to the root) does that its rule does not allow."""
    parts = path.with_suffix("").parts
    parts = parts[1:] if parts[0] == "client" else parts
    is_package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if is_package else parts)
    rule, tree = rule_of(module), ast.parse(source)
    aliases = dict(_aliases(tree))
    bad = []
    for name, line in imported(tree, module if is_package else module.rpartition(".")[0]):
        if reason := _refused(name, rule):
            bad.append(f"{path}:{line}: {reason}")
    for name, line in _dotted_names(tree, aliases):
        if _within(name, rule.forbidden):
            bad.append(f"{path}:{line}: uses {name}")
    if not MAY_PRINT.match(path.as_posix()):
        bad += [f"{path}:{line}: prints" for line in _prints(tree)]
    if rule.package.startswith("app"):
        bad += [f"{path}:{line}: holds SQL text" for line in _sql_texts(tree)]
    return bad


def _refused(name: str, rule: Rule) -> str | None:
    if _within(name, rule.forbidden):
        return f"imports {name}, which {rule.package} must not know"
    top = name.partition(".")[0]
    if top in PACKAGES:
        return None if _within(name, rule.internal) else f"{rule.package} imports {name}"
    if top in sys.stdlib_module_names:
        return None
    if top not in DECLARED:
        return f"imports {name}, which pyproject.toml does not declare"
    if rule.third_party is None or top in rule.third_party:
        return None
    return f"{rule.package} imports {name}"


def _within(name: str, roots: frozenset[str] | set[str]) -> bool:
    return any(name == root or name.startswith(root + ".") for root in roots)


def imported(tree: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """Dotted names of all imports, lazy, conditional, relative and dynamic ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]).rstrip(".")
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in {
            "__import__",
            "import_module",
            "importlib.import_module",
        }:
            argument = node.args[0] if node.args else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value, node.lineno


def _aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Local name → imported name: ``import numpy as np`` makes ``np.random`` numpy's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                top = a.name.partition(".")[0]
                yield (a.asname, a.name) if a.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)


def _dotted_names(tree: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = _name(node).partition(".")
            if first in aliases:
                yield f"{aliases[first]}.{rest}", node.lineno


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return "?"


def _prints(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in {
            "print",
            "pprint.pprint",
            "sys.stdout.write",
            "sys.stderr.write",
        }:
            yield node.lineno


def _sql_texts(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and SQL_TEXT.match(node.value)
        ):
            yield node.lineno
