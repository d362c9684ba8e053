"""Every operation of the API document under generated requests: schemathesis, with all checks.

Some requests match the schema and are still invalid, so 422 is accepted for them: an unknown
cursor, a query or records that do not fit the dataset, an amount out of range. Bodies above
their limit receive 413.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.demo.service import ServiceProcess
from tests.process.session import Session

pytest.importorskip("schemathesis", reason="needs schemathesis")
pytestmark = pytest.mark.slow

ROLES = ["admin", "owner", "analyst", "auditor"]
#: Operations of the HTTP API that may refuse a request although it fits the schema, because they
#: have further conditions.
BEYOND_THE_FORM = [
    "GET /v1/audit",
    "GET /v1/datasets",
    "GET /v1/ledger",
    "GET /v1/queries",
    "GET /v1/users",
    "PATCH /v1/users/{name}",
    "PUT /v1/users/{name}/budget",
    "POST /v1/datasets",
    "PUT /v1/datasets/{name}/budgets/{user}",
    "PUT /v1/datasets/{name}/nodes",
    "PUT /v1/datasets/{name}/records",
    "POST /v1/queries",
    "POST /v1/quotes",
]
#: The operation whose body is plain text. Any text is valid: even ``[]`` is the name of a node.
ANY_TEXT = "PUT /v1/datasets/{name}/nodes"
RIGHT = ["2xx", "3xx", "401", "403", "404", "409", "429", "413", "415", "422"]
WRONG = ["400", "401", "403", "404", "405", "406", "409", "412", "413", "415", "422", "429"]


def configuration() -> str:
    lines = ["[checks.negative_data_rejection]", f"expected-statuses = {WRONG}"]
    for operation in BEYOND_THE_FORM:
        lines += ["", "[[operations]]", f'include-name = "{operation}"']
        lines += ["[operations.checks.positive_data_acceptance]", f"expected-statuses = {RIGHT}"]
        if operation == ANY_TEXT:
            lines += ["[operations.checks.negative_data_rejection]"]
            lines += [f"expected-statuses = {[*WRONG, '2xx']}"]
    return "\n".join(lines) + "\n"


def test_every_operation_keeps_its_document(service: ServiceProcess, tmp_path: Path) -> None:
    session = Session.open(service)
    everybody = session.ok(
        "POST", "/v1/users", session.admin, json={"name": "all", "roles": ROLES}
    )["key"]
    allowance = {"epsilon": "3", "delta": "0"}
    session.ok("PUT", "/v1/datasets/star/budgets/all", session.owner, json=allowance)
    (tmp_path / "schemathesis.toml").write_text(configuration())
    command = [str(Path(sys.executable).with_name("schemathesis")), "--no-color"]
    command += ["--config-file", "schemathesis.toml"]
    command += ["run", f"{service.url}/openapi.json", "-H", f"Authorization: Bearer {everybody}"]
    command += ["--phases", "examples,coverage,fuzzing,stateful", "--checks", "all"]
    command += ["--max-examples", "15", "--seed", "1", "--continue-on-failure"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
    paths = session.ok("GET", "/openapi.json", session.admin)["paths"]
    operations = sum(len(methods) for methods in paths.values())
    assert f"Tested: {operations}\n" in run.stdout, run.stdout[-2_000:]
