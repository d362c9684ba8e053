"""Finds the private names of libraries in the four packages.

A private name begins with one underscore. It counts as a library's when it is imported from a
module outside the project, when it is read from any object but ``self``, or when a class that
derives from a library's class uses or defines a name that the library's class has. A private name
of another object of the project is reported as well: nothing outside a class should need it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.architecture.imports import ROOT
from tests.architecture.rooms import module_of, sources

PROJECT = frozenset({"accounting", "mechanisms", "storage", "app", "privypurse", "tests"})
#: Names with an underscore that Python documents: the interface of named tuples, and the value of
#: an enumeration.
DOCUMENTED = frozenset({"_make", "_fields", "_replace", "_asdict", "_value_"})
_BY_NAME = {"getattr": 1, "setattr": 1, "hasattr": 1, "delattr": 1}
_OWN = ("self", "cls", "super()", "type(self)")


@dataclass(frozen=True, order=True)
class Finding:
    """One private name in one file."""

    path: str
    name: str


@dataclass
class Class:
    """A class of the project: its bases as dotted names."""

    bases: list[str] = field(default_factory=list)


def is_private(name: str) -> bool:
    return bool(re.fullmatch(r"_[A-Za-z0-9]\w*", name)) and name not in DOCUMENTED


def findings(path: Path, source: str, classes: Mapping[str, Class]) -> Iterator[Finding]:
    """The private names in one file; ``classes`` are those of the project (``project_classes``)."""
    nodes = list(ast.walk(ast.parse(source)))
    file = path.as_posix()
    for name in _imported(nodes):
        yield Finding(file, name)
    module = module_of(path)
    of_libraries: dict[ast.AST, frozenset[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            private = library_names(f"{module}.{node.name}", classes)
            if not private:
                continue
            of_libraries |= dict.fromkeys(ast.walk(node), private)
            yield from (Finding(file, name) for name in _defined(node) if name in private)
    for node in nodes:
        for receiver, name in _taken(node):
            if not is_private(name):
                continue
            # ``unparse`` is slow, so the receiver is turned into text only if the name is private.
            own = receiver is not None and ast.unparse(receiver) in _OWN
            if not own or name in of_libraries.get(node, ()):
                yield Finding(file, name)


def project_findings() -> set[Finding]:
    """Every private name in the four packages."""
    classes = project_classes()
    return {
        finding
        for path in sources()
        for finding in findings(path, (ROOT / path).read_text("utf-8"), classes)
    }


@cache
def project_classes() -> dict[str, Class]:
    """Dotted name → class, for every class at the top of a module of the four packages."""
    classes: dict[str, Class] = {}
    for path in sources():
        classes |= classes_of(path, (ROOT / path).read_text("utf-8"))
    return classes


def classes_of(path: Path, source: str) -> dict[str, Class]:
    """The classes of one module, with their bases resolved through its imports."""
    tree, module = ast.parse(source), module_of(path)
    nodes = list(ast.walk(tree))
    names = {node.name: f"{module}.{node.name}" for node in tree.body if _is_class(node)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.asname or a.name: a.name for a in node.names}
    classes = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            bases = []
            for base in node.bases:
                first, *rest = ast.unparse(base).partition("[")[0].split(".")
                bases.append(".".join([names.get(first, first), *rest]))
            classes[f"{module}.{node.name}"] = Class(bases)
    return classes


def library_names(name: str, classes: Mapping[str, Class]) -> frozenset[str]:
    """The private names of the library classes that a class of the project derives from."""
    if name in classes:
        own = (library_names(base, classes) for base in classes[name].bases if base != name)
        return frozenset[str]().union(*own)
    module, _, last = name.rpartition(".")
    if not module or module.partition(".")[0] in PROJECT:
        return frozenset()
    return _private_names(module, last)


@cache
def _private_names(module: str, name: str) -> frozenset[str]:
    """The private names of a library's class: its own and those that its module writes."""
    kind = getattr(importlib.import_module(module), name)
    names: set[str] = set()
    for base in inspect.getmro(kind) if inspect.isclass(kind) else ():
        names |= set(vars(base))
        try:
            # Functions outside the class may set private attributes too, so the whole module is
            # searched.
            names |= set(re.findall(r"\b_\w+", inspect.getsource(inspect.getmodule(base) or base)))
        except (OSError, TypeError):
            continue  # A class written in C has no Python source, but ``vars`` lists all its names.
    return frozenset(filter(is_private, names))


def _is_class(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            modules, names = [a.name for a in node.names], []
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules, names = [node.module], [a.name for a in node.names]
        elif isinstance(node, ast.Call) and _last(node.func).endswith("import_module"):
            texts = (_text(argument) for argument in node.args)
            modules, names = [text for text in texts if text], []
        else:
            continue
        for module in modules:
            if module.partition(".")[0] not in PROJECT:
                yield from filter(is_private, [*module.split("."), *names])


def _defined(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield item.name
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id
        elif isinstance(item, ast.Assign):
            yield from (target.id for target in item.targets if isinstance(target, ast.Name))


def _taken(node: ast.AST) -> Iterator[tuple[ast.AST | None, str]]:
    """Receiver and name of every attribute that the node takes, written out or in a string.

    The receiver is None where nothing names it.
    """
    if isinstance(node, ast.Attribute):
        yield node.value, node.attr
    elif isinstance(node, ast.Subscript):
        if owner := _owner_of_dict(node.value):
            yield owner, _text(node.slice)
    elif isinstance(node, ast.Call):
        called = _last(node.func)
        position = _BY_NAME.get(called) if isinstance(node.func, ast.Name) else None
        if position is not None and len(node.args) > position:
            yield node.args[0], _text(node.args[position])
        elif called in ("attrgetter", "methodcaller"):
            for argument in node.args:
                yield from ((None, part) for part in _text(argument).split("."))
        elif (
            isinstance(node.func, ast.Attribute)
            and node.args
            and (owner := _owner_of_dict(node.func.value))
        ):
            yield owner, _text(node.args[0])


def _owner_of_dict(node: ast.AST) -> ast.AST | None:
    """The object of ``x.__dict__`` and of ``vars(x)``."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and _last(node.func) == "vars" and node.args:
        return node.args[0]
    return None


def _last(node: ast.AST) -> str:
    """The last name of a dotted name, and of what ends in one."""
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
