"""``privypurse`` against a live service: all commands of an operator, an owner and an analyst."""

from __future__ import annotations

import contextlib
import csv
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.demo.service import ServiceProcess
from privypurse import PrivyPurse
from privypurse.cli import cli
from tests.architecture.imports import ROOT
from tests.process.conftest import QUICK
from tests.process.session import EDGES, QUERY

GRAPH = {
    "name": "star",
    "kind": "graph",
    "neighbouring": "edge",
    "nodes": {"count": 12},
    "max_degree": 10,
    "cap": {"epsilon": "5"},
}


class CommandLine:
    """Runs ``privypurse`` in a folder, as the user whose key file is named."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url

    def __call__(self, user: str, *arguments: str, status: int = 0, typed: str = "") -> str:
        """The output: stdout after a success, otherwise stderr."""
        variables = {
            "PRIVYPURSE_URL": self.url,
            "PRIVYPURSE_KEY_FILE": str(self.folder / f"{user}.key"),
            "PRIVYPURSE_KEY": None,
        }
        with contextlib.chdir(self.folder):
            result = CliRunner().invoke(cli, arguments, input=typed, env=variables)
        assert result.exit_code == status, result.output
        return result.stdout if status == 0 else result.stderr

    def write(self, name: str, content: Any) -> str:
        text = content if isinstance(content, str) else json.dumps(content)
        (self.folder / name).write_text(text, "utf-8")
        return name


@pytest.fixture(scope="module")
def privypurse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    folder = tmp_path_factory.mktemp("cli")
    with ServiceProcess(folder / "data", **QUICK) as service:
        run = CommandLine(folder, service.url)
        run.write("root.key", service.admin_key + "\n")
        for name, role in (("olympe", "owner"), ("ada", "analyst")):
            run.write(f"{name}.key", run("root", "users", "create", name, "--role", role))
        run("olympe", "datasets", "register", run.write("star.json", GRAPH))
        run("olympe", "datasets", "upload", "star", run.write("star.csv", EDGES))
        run("olympe", "grant", "star", "ada", "2")
        yield run


def test_notices(privypurse: CommandLine) -> None:
    lines = privypurse("olympe", "notices").splitlines()
    assert any("version_ready\tVersion 1 of star is ready" in line for line in lines)


def test_users_and_keys(privypurse: CommandLine) -> None:
    assert "ada\tanalyst\tenabled\n" in privypurse("root", "users", "list")
    key = privypurse("root", "users", "issue-key", "ada")
    privypurse.write("second.key", key)
    assert "star" in privypurse("second", "datasets", "list")
    keys = privypurse("ada", "users", "keys", "ada").splitlines()
    assert [line.split("\t")[3] for line in keys] == ["valid", "valid"]
    key_id = key.split("_")[1]
    privypurse("ada", "users", "revoke-key", key_id)
    assert "valid key" in privypurse("second", "datasets", "list", status=1)
    limits = ("--epsilon", "0.5", "--until", "2100-01-01", "--dataset", "star")
    privypurse.write("notebook.key", privypurse("ada", "users", "issue-key", "ada", *limits))
    assert "star" in privypurse("notebook", "datasets", "list")
    assert "0.5 left of ε = 0.5; only star; until 2100" in privypurse("ada", "users", "keys", "ada")
    privypurse("notebook", "users", "issue-key", "ada", status=1)
    privypurse("root", "users", "create", "eva", "--role", "analyst")
    privypurse("root", "users", "disable", "eva")
    privypurse("root", "users", "roles", "eva", "--role", "owner", "--role", "analyst")
    assert "eva\tanalyst,owner\tdisabled\n" in privypurse("root", "users", "list")
    privypurse("root", "users", "enable", "eva")
    assert "eva\tanalyst,owner\tenabled\n" in privypurse("root", "users", "list")
    assert "Already exists" in privypurse(
        "root", "users", "create", "eva", "--role", "analyst", status=1
    )


def test_datasets(privypurse: CommandLine) -> None:
    assert privypurse("olympe", "datasets", "list") == "star\tgraph\tready\t1\n"
    assert json.loads(privypurse("ada", "datasets", "show", "star"))["max_degree"] == 10
    named = {"name": "named", "kind": "graph", "cap": {"epsilon": "1"}}
    privypurse("olympe", "datasets", "register", privypurse.write("named.json", named))
    ids = privypurse.write("ids.csv", "ann\nbob\n")
    assert privypurse("olympe", "datasets", "nodes", "named", ids) == "2 nodes\n"
    edges = privypurse.write("edges.data", "source,target\nann,bob\n")
    assert "media type" in privypurse("olympe", "datasets", "upload", "named", edges, status=1)
    uploaded = privypurse(
        "olympe", "datasets", "upload", "named", edges, "--media-type", "text/csv"
    )
    assert uploaded == "named is ready, version 1\n"
    wrong = privypurse.write("wrong.csv", "source,target\nann,eve\n")
    assert "Invalid records" in privypurse("olympe", "datasets", "upload", "named", wrong, status=1)
    privypurse("olympe", "datasets", "withdraw", "named")
    query = privypurse.write("named-query.json", QUERY | {"dataset": "named"})
    privypurse("olympe", "grant", "named", "ada", "1")
    assert "No records" in privypurse("ada", "query", query, status=1)
    assert "nowhere.csv" in privypurse(
        "olympe", "datasets", "upload", "star", "nowhere.csv", status=1
    )
    array = privypurse.write("array.json", "[]")
    for file, reason in ((array, "not a JSON object"), ("nowhere.json", "No such file")):
        refusal = privypurse("olympe", "datasets", "register", file, status=2)
        assert refusal.startswith(f"{file}: {reason}")


def test_limits_follow_the_own_accounts(privypurse: CommandLine) -> None:
    with PrivyPurse(privypurse.url, (privypurse.folder / "root.key").read_text()) as root:
        root.create_user("ida", "analyst")
        root.limit_user("ida", epsilon=3)
    privypurse.write("ida.key", privypurse("root", "users", "issue-key", "ida", "--epsilon", "1"))
    described = privypurse.write("alone.json", GRAPH | {"name": "alone"})
    privypurse("olympe", "datasets", "register", described)
    privypurse("olympe", "grant", "alone", "ida", "2")
    assert privypurse("ida", "budgets").splitlines() == [
        "alone\tida\tspent ε = 0\tof ε = 2",
        "all datasets\t\tspent ε = 0\tof ε = 3",
        "this key\t\tspent ε = 0\tof ε = 1",
    ]


def test_queries_and_their_charges(privypurse: CommandLine) -> None:
    file = privypurse.write("query.json", QUERY)
    quote = json.loads(privypurse("ada", "quote", file))
    assert quote["charge"].keys() == {"epsilon", "delta", "rho"}
    assert (quote["charge"]["epsilon"], quote["charge"]["delta"]) == ("0.5", "0")
    assert 0 < float(quote["charge"]["rho"]) < 0.5
    assert quote["affordable"] is True
    target = {k: v for k, v in QUERY.items() if k != "epsilon"} | {
        "target": {"score_below_best": 5}
    }
    reaching = json.loads(privypurse("ada", "quote", "-", typed=json.dumps(target)))
    assert float(reaching["charge"]["epsilon"]) > 0
    answer = json.loads(privypurse("ada", "query", file, "--idempotency-key", "k"))
    assert len(answer["answer"]["selected"]) == 2
    assert json.loads(privypurse("ada", "query", file, "--idempotency-key", "k")) == answer
    spent = "star\tada\tspent ε = 0.5\tof ε = 2\n"
    assert privypurse("olympe", "budgets", "star") == spent
    assert spent in privypurse("ada", "budgets")
    below = privypurse("olympe", "grant", "star", "ada", "0.4", status=1)
    assert below.startswith("Below what is spent: ")
    assert below.endswith("\nspent: ε = 0.5\n")
    greedy = privypurse.write("greedy.json", QUERY | {"epsilon": "4"})
    refused = privypurse("ada", "query", greedy, status=1)
    assert refused.startswith("Privacy budget exhausted: ")
    assert refused.endswith("\nremaining: ε = 1.5, largest charge that fits: ε = 1.5\n")
    tree = QUERY | {"query": {"kind": "tree"}}
    unsupported = privypurse("ada", "query", privypurse.write("t.json", tree), status=1)
    assert "\nneighbouring: add_remove, replace\n" in unsupported
    assert "JSON" in privypurse("ada", "query", privypurse.write("x.json", "{"), status=2)
    lacking = privypurse("ada", "query", privypurse.write("y.json", {"query": {}}), status=2)
    assert lacking == "y.json: lacks dataset\n"
    for amounts in ({}, {"epsilon": "1", "rho": "1"}):
        file = privypurse.write("z.json", {"dataset": "star", "query": {}} | amounts)
        assert "z.json: name epsilon, or rho" in privypurse("ada", "query", file, status=2)
    assert "nowhere.json: No such" in privypurse("ada", "query", "nowhere.json", status=2)
    (privypurse.folder / "latin.json").write_bytes(b'{"dataset": "\xe9"}')
    assert "latin.json: not JSON" in privypurse("ada", "quote", "latin.json", status=2)

    lines = list(csv.DictReader(privypurse("ada", "export").splitlines()))
    [charge] = [line for line in lines if line["kind"] == "charge"]
    assert (charge["dataset"], charge["epsilon"], charge["query"]) == ("star", "0.5", answer["id"])
    stranger = CliRunner().invoke(cli, ["--url", privypurse.url, "--key", "pp_x_y", "export"])
    assert (stranger.exit_code, stranger.stdout) == (1, "")
    earlier = privypurse.write("earlier.csv", "an earlier export")
    assert "No role" in privypurse("root", "export", "--output", earlier, status=1)
    assert (privypurse.folder / earlier).read_text() == "an earlier export"
    privypurse("olympe", "export", "--dataset", "star", "--output", "star-ledger.csv")
    exported = (privypurse.folder / "star-ledger.csv").read_text().splitlines()
    assert exported[0].startswith("at,kind,account,dataset")
    assert any(",charge,cap,star," in line for line in exported)
    assert "allow_large_delta" in privypurse("olympe", "cap", "star", "0.001", status=1)
    changed = privypurse("olympe", "cap", "star", "0.001", "--allow-large-delta", "--gaussian")
    assert changed.startswith("cap of star: ε = ")
    assert ", ρ = " in changed
    # For an account that counts privacy loss in ρ, ``budgets`` shows what still fits. Charges of
    # Gaussian noise have no ε.
    in_rho = ("--composition-delta", "0.000001", "--gaussian")
    privypurse("olympe", "grant", "star", "ada", "2", *in_rho)
    every = privypurse("ada", "budgets").splitlines()
    (account,) = (line for line in every if line.startswith("star\t"))
    assert "\tlargest ε 1.5\tat ε = 0.1 fit " in account
    assert "top_k " in account.rpartition("\t")[2]
    noisy = {name: value for name, value in QUERY.items() if name != "epsilon"} | {"rho": "0.01"}
    noisy["query"] = {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}]}
    stated = json.loads(privypurse("ada", "quote", privypurse.write("noisy.json", noisy)))
    assert stated["charge"] == {"epsilon": None, "delta": "0", "rho": "0.01"}


def test_a_command_without_a_key_says_what_to_set(privypurse: CommandLine) -> None:
    assert "nobody.key" in privypurse("nobody", "budgets", status=1)
    privypurse.folder.joinpath("empty.key").write_text("\n")
    assert "empty.key is empty" in privypurse("empty", "budgets", status=2)
    no_key = {"PRIVYPURSE_KEY_FILE": None, "PRIVYPURSE_KEY": None}
    result = CliRunner().invoke(cli, ["budgets"], env=no_key)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "PRIVYPURSE_KEY_FILE" in result.stderr


def test_the_commands_of_the_service_need_no_client(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "app.cli", *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    assert (run("version").returncode, run("verify").returncode) == (0, 2)
    refusal = run("budgets")
    assert (refusal.returncode, refusal.stdout) == (2, "")
    assert "No such command 'budgets'" in refusal.stderr
    assert "python -m privypurse.cli" in run("--help").stdout
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        taken = run("serve", "--port", str(port), "--data", "never-made")
    assert taken.returncode == 1
    assert f"port {port} of 127.0.0.1 is taken" in taken.stderr
    assert "--port" in taken.stderr
    assert not (tmp_path / "never-made").exists()


def test_errors_name_the_command_that_was_typed() -> None:
    refusal = subprocess.run(
        ["./run", "serve", "--prot", "1"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert refusal.returncode == 2
    assert "Try './run serve --help'" in refusal.stderr


def test_options_say_the_same_as_variables(privypurse: CommandLine) -> None:
    options = ["--url", privypurse.url, "--key-file", "ada.key"]
    assert "star\tgraph\tready" in privypurse("nobody", *options, "datasets", "list")
    key = (privypurse.folder / "ada.key").read_text().strip()
    assert "star\tgraph\tready" in privypurse("nobody", "--key", key, "datasets", "list")
