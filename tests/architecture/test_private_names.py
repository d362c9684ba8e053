"""Private and undocumented names of libraries are on lists, with reasons and pinned libraries."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tests.architecture.imports import ROOT
from tests.architecture.private_names import (
    Finding,
    classes_of,
    findings,
    project_classes,
    project_findings,
)


@dataclass(frozen=True)
class Seam:
    """Private names that one file takes from one library, and why no public name serves."""

    path: str
    library: str
    names: frozenset[str]
    reason: str


SEAMS = (
    Seam(
        "mechanisms/kernels/compiled.py",
        "numba",
        frozenset(
            {"_cache", "_cache_file", "_load_index", "_data_name", "_save_data", "_save_index"}
        ),
        "Two processes that compile one kernel may overwrite each other's code in the cache.",
    ),
    Seam(
        "mechanisms/kernels/compiled.py",
        "numba",
        frozenset({"_impl", "_shared_module", "_get_module_for_linking"}),
        "The intermediate code of all loaded kernels stays in memory as objects of 20 MB.",
    ),
    Seam(
        "mechanisms/noise/intervals.py",
        "mpmath",
        frozenset({"_mpi_"}),
        "The public ends of an interval are intervals again; only the pair is exact.",
    ),
    Seam(
        "storage/database/statements.py",
        "sqlalchemy",
        frozenset({"_result_columns"}),
        "A compiled statement names the columns of its rows nowhere else.",
    ),
    Seam(
        "app/cluster/executor.py",
        "distributed",
        frozenset({"_ensure_connected"}),
        "The client waits without limit for a scheduler that accepts a connection and is silent.",
    ),
)


def test_every_private_name_of_a_library_is_on_the_list() -> None:
    listed = {Finding(seam.path, name) for seam in SEAMS for name in seam.names}
    assert project_findings() == listed


#: Undocumented names of uvicorn that the service uses. None of them begins with an underscore.
UNDOCUMENTED = Seam(
    "app/http/protocol.py",
    "uvicorn",
    frozenset(
        {
            "app_state", "chunked_encoding", "client", "cycle", "keep_alive", "more_body",
            "on_body", "on_header", "on_headers_complete", "on_message_begin",
            "on_message_complete", "on_response_complete", "on_url", "pipeline",
            "response_complete", "response_started", "scope", "send_400_response", "shutdown",
            "transport",
        }
    ),
    "uvicorn has no setting for the bytes and the seconds of headers with httptools.",
)  # fmt: skip


def test_every_undocumented_name_of_the_server_is_on_the_list() -> None:
    tree = ast.parse((ROOT / UNDOCUMENTED.path).read_text("utf-8"))
    names = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value).startswith(("self", "super()"))
    }
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    source = inspect.getsource(HttpToolsProtocol) + inspect.getsource(RequestResponseCycle)
    libraries = set(re.findall(r"self\.(\w+)", source)) | set(vars(HttpToolsProtocol))
    documented = set(dir(asyncio.Protocol))
    used = {name for name in names & libraries - documented if not name.startswith("_")}
    assert used == UNDOCUMENTED.names


@pytest.mark.parametrize("seam", [*SEAMS, UNDOCUMENTED], ids=lambda seam: seam.library)
def test_its_library_is_pinned_to_a_minor_version(seam: Seam) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    entries = project["dependencies"] + optional["cluster"] + optional["s3"]
    (requirement,) = (r for r in map(Requirement, entries) if r.name == seam.library)
    assert re.fullmatch(r"==\d+\.\d+\.\*", str(requirement.specifier))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from fastapi import _compat", "_compat"),
        ("from fastapi._compat import lenient_issubclass", "_compat"),
        ("import uvicorn._types", "_types"),
        ("import importlib\nimportlib.import_module('fastapi._compat')", "_compat"),
        ("def f(request):\n    request._body = b''", "_body"),
        ("def f(request):\n    return request.scope, request._receive", "_receive"),
        ("def f(kernel):\n    return kernel._cache.path", "_cache"),
        ("def f(request):\n    return getattr(request, '_body', b'')", "_body"),
        ("def f(request):\n    setattr(request, '_body', b'')", "_body"),
        ("def f(request):\n    return request.__dict__['_body']", "_body"),
        ("def f(request):\n    return request.__dict__.get('_body')", "_body"),
        ("def f(request):\n    return vars(request)['_body']", "_body"),
        ("from operator import attrgetter\nf = attrgetter('client._pool')", "_pool"),
        (
            "from starlette.requests import Request\n"
            "class Own(Request):\n    def f(self):\n        self._body = b''",
            "_body",
        ),
        (
            "import starlette.requests as lib\n"
            "class Own(lib.Request):\n    def f(self):\n        return self._json",
            "_json",
        ),
        (
            "from app.http.route import Route\n"
            "class Own(Route):\n    def f(self):\n        return self._embed_body_fields",
            "_embed_body_fields",
        ),
        (
            "from distributed import Client\n"
            "class Own(Client):\n    async def _ensure_connected(self): ...",
            "_ensure_connected",
        ),
    ],
)
def test_a_seeded_private_name_is_found(source: str, name: str) -> None:
    path = Path("app/seeded.py")
    classes = project_classes() | classes_of(path, source)
    assert {finding.name for finding in findings(path, source, classes)} == {name}


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations\nfrom app.http.route import _own",
        "class Own:\n    def __init__(self):\n        self._body = b''\n"
        "    def f(self):\n        return self._body",
        "from starlette.requests import Request\n"
        "class Own(Request):\n    def f(self):\n        return self._mine",
        "def f(row, count):\n    _, first = row._make(count), row._fields\n    return first",
    ],
)
def test_own_and_documented_names_are_not_reported(source: str) -> None:
    path = Path("app/seeded.py")
    classes = project_classes() | classes_of(path, source)
    assert list(findings(path, source, classes)) == []
