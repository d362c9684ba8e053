"""The client is the one wheel: installed alone, its library and its command work."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.utils import canonicalize_name

from app.demo.service import ServiceProcess
from tests.architecture.imports import ROOT
from tests.process.conftest import QUICK

GRAPH = {
    "name": "star",
    "kind": "graph",
    "neighbouring": "edge",
    "nodes": {"count": 12},
    "max_degree": 10,
    "cap": {"epsilon": "5"},
}
#: The package httpx and its dependencies.
OF_HTTPX = {"httpx", "httpcore", "h11", "anyio", "idna", "certifi"}
#: The package typer and its dependencies.
OF_TYPER = {
    "typer",
    "annotated-doc",
    "annotated-types",
    "markdown-it-py",
    "mdurl",
    "pydantic",
    "pydantic-core",
    "pygments",
    "rich",
    "shellingham",
    "typing-inspection",
}
#: ``OPTIONAL`` are packages that only some versions of Python or typer need, or that belong to the
#: virtual environment.
OF_CRYPTOGRAPHY = {"cryptography", "cffi", "pycparser"}
OPTIONAL = {"click", "pip", "setuptools", "sniffio", "typing-extensions"}
PROGRAM = """
import sys
import httpx, importlib.metadata, privypurse
answer = {"items": [], "next": None}
transport = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
with privypurse.PrivyPurse("http://service", "pp_x", transport=transport) as purse:
    assert purse.budgets() == []
assert not {"typer", "rich", "pydantic"} & sys.modules.keys()
print(importlib.metadata.version("privypurse"), privypurse.__version__)
"""


def pip(python: Path | str, *arguments: Path | str) -> str:
    """Runs pip; skips the test if there is no package index."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=10"]
    process = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    if process.returncode and "No matching distribution found" in process.stderr:
        pytest.skip("needs a package index")
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of a fresh virtual environment with the client."""
    folder = tmp_path_factory.mktemp("client")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    # The wheel is built from a copy, because building leaves files beside the sources. It also
    # contains rules of the service, so those packages are copied too.
    for name in ("client", "accounting", "mechanisms", "storage", "app"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "build")
        )
    pip(folder / "venv/bin/python", "install", "--quiet", folder / "client")
    return folder / "venv/bin"


@pytest.mark.slow
def test_it_installs_into_a_fresh_environment(installed: Path, tmp_path: Path) -> None:
    python = installed / "python"
    packages = json.loads(pip(python, "list", "--format=json"))
    names = {canonicalize_name(package["name"]) for package in packages}
    assert names - OPTIONAL == {"privypurse"} | OF_HTTPX | OF_TYPER | OF_CRYPTOGRAPHY
    output = subprocess.check_output([python, "-c", PROGRAM], text=True, cwd=tmp_path).split()
    assert len(output) == 2
    assert output[0] == output[1]
    [folder] = installed.parent.glob("lib/python*/site-packages")
    assert (folder / "privypurse/py.typed").is_file()
    assert (folder / "privypurse/rules/app/check.py").is_file()
    [licence] = folder.glob("privypurse-*.dist-info/licenses/LICENSE")
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow
def test_the_installed_command_speaks_to_a_service(installed: Path, tmp_path: Path) -> None:
    def privypurse(user: str, *arguments: str) -> str:
        variables = {"PRIVYPURSE_URL": service.url, "PRIVYPURSE_KEY_FILE": f"{user}.key"}
        command = [installed / "privypurse", *arguments]
        return subprocess.check_output(command, text=True, cwd=tmp_path, env=variables)

    with ServiceProcess(tmp_path / "data", **QUICK) as service:
        (tmp_path / "root.key").write_text(service.admin_key)
        assert "budgets" in privypurse("nobody", "--help")
        for name, role in (("olympe", "owner"), ("ada", "analyst")):
            key = privypurse("root", "users", "create", name, "--role", role)
            (tmp_path / f"{name}.key").write_text(key)
        assert privypurse("ada", "budgets") == ""
        (tmp_path / "star.json").write_text(json.dumps(GRAPH))
        privypurse("olympe", "datasets", "register", "star.json")
        privypurse("olympe", "grant", "star", "ada", "2")
        assert privypurse("ada", "budgets") == "star\tada\tspent ε = 0\tof ε = 2\n"


def test_the_client_depends_on_three_libraries() -> None:
    project = tomllib.loads((ROOT / "client/pyproject.toml").read_text("utf-8"))["project"]
    dependencies = [name.partition(">")[0] for name in project["dependencies"]]
    assert dependencies == ["httpx", "typer", "cryptography"]
    assert project["requires-python"] == ">=3.11"
    assert project["scripts"] == {"privypurse": "privypurse.cli:main"}


def test_every_folder_of_the_client_is_packaged() -> None:
    built = tomllib.loads((ROOT / "client/pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = {
        ".".join(path.parent.relative_to(ROOT / "client").parts)
        for path in (ROOT / "client/privypurse").rglob("*.py")
    }
    assert set(built["packages"]) == folders


def test_the_wheel_of_the_client_is_the_only_one() -> None:
    """No wheel puts ``app`` or ``storage`` into the packages of an environment."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert document["tool"]["setuptools"] == {"packages": []}
    assert document["project"]["name"] != "privypurse"
    assert "scripts" not in document["project"]


@pytest.mark.slow
def test_installing_the_service_installs_no_module(tmp_path: Path) -> None:
    source = tmp_path / "service"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("accounting", "mechanisms", "storage", "app", "client"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip(sys.executable, "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, source)
    [wheel] = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        folders = {name.partition("/")[0] for name in archive.namelist()}
    assert [folder.endswith(".dist-info") for folder in folders] == [True]


@pytest.mark.slow
def test_a_program_that_uses_it_is_type_checked(tmp_path: Path) -> None:
    """Answers have types of their own, and a misspelt option is a type error."""
    program = tmp_path / "program.py"
    program.write_text(
        "from privypurse import PrivyPurse\n"
        "purse = PrivyPurse('http://service', 'pp_x')\n"
        "answer = purse.top_k('g', 3, 'degree', epsilon='1', sensitivity='local')\n"
        "reveal_type(answer.selected)\n"
        "reveal_type(purse.tree('t', epsilon=1).tree.predict([{}]))\n"
        "purse.top_k('g', 3, 'degree', epsilon='1', sensitivty='local')\n"
        "purse.top_k('g', 3, 'degree', epsilon='1', sensitivity='locl')\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", program],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "client"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in checked.stdout.splitlines() if '" defined in "' not in line]
    assert len(lines) == 5, checked.stdout + checked.stderr
    assert 'program.py:4: note: Revealed type is "list[Any]"' in lines[0].replace("builtins.", "")
    assert '"list[str]"' in lines[1].replace("builtins.", "")
    assert lines[2].startswith("program.py:6: error: Unexpected keyword argument")
    assert lines[3].startswith("program.py:7: error: Argument")
