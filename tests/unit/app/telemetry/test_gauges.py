"""The gauges of a service show its load and its ledger; unknown is not 0."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.contract.errors import RateLimited
from app.engine.admission import InFlight
from app.telemetry.metrics import GAUGES, Metrics
from tests.support.service import Service


def read(metrics: Metrics) -> dict[str, float]:
    text = metrics.exposition().decode()
    series = re.findall(r"^privypurse_(\w+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in series if name in GAUGES}


def test_a_gauge_without_a_measurement_is_unknown() -> None:
    values = read(Metrics())
    assert {name for name, value in values.items() if not math.isnan(value)} == {"sources_failing"}
    assert set(values) == set(GAUGES)


#: A program that prints the metrics of one of several processes. Its argument says what the process
#: knows about the ledger.
ONE_OF_SEVERAL = """
import sys
from app.telemetry.metrics import Metrics
metrics = Metrics(several=True)
metrics.watch("ledger_valid", lambda: {"unknown": None, "bad": 0.0, "good": 1.0}[sys.argv[1]])
sys.stdout.buffer.write(metrics.exposition())
"""


def test_an_unknown_gauge_of_one_process_hides_no_alarm_of_another(tmp_path: Path) -> None:
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def valid(ledger: str) -> list[str]:
        command = [sys.executable, "-c", ONE_OF_SEVERAL, ledger]
        text = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        return re.findall(r"^privypurse_ledger_valid (\S+)$", text.decode(), re.MULTILINE)

    assert valid("unknown") == []
    assert valid("good") == ["1.0"]
    assert valid("unknown") == ["1.0"]
    assert valid("bad") == ["0.0"]
    assert valid("unknown") == ["0.0"]
    assert valid("good") == ["0.0"]


def test_a_scrape_and_a_background_thread_register_a_gauge_once() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            metrics = Metrics()
            with ThreadPoolExecutor(4) as pool:
                for refreshed in [pool.submit(metrics.refresh) for _ in range(4)]:
                    refreshed.result()
    finally:
        sys.setswitchinterval(interval)


def test_queries_count_between_charge_and_deadline() -> None:
    queries = InFlight(1, 2)
    queries.enter(7)
    with pytest.raises(RateLimited):
        queries.enter(7)
    queries.enter(8)
    assert queries.total == 2
    queries.leave(7)
    assert queries.total == 1


def test_a_failing_source_counts_once_until_it_works_again() -> None:
    metrics = Metrics()
    for name in ("a", "a", "b"):
        metrics.note_source(name, fails=True)
    assert read(metrics)["sources_failing"] == 2
    metrics.note_source("a", fails=False)
    assert read(metrics)["sources_failing"] == 1
    assert b'"a"' not in metrics.exposition()


def test_the_gauges_of_a_service_follow_its_ledger(people: Service) -> None:
    services: Any = people.client.app.state.services  # type: ignore[attr-defined]
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "0.5")
    people("otto", "GET", "/v1/ledger/verification")
    edges = {"kind": "statistic", "statistic": "edges"}
    body = {"dataset": "triangle", "epsilon": "0.75", "query": edges}
    assert people("ana", "POST", "/v1/queries", json=body).status_code == 403
    values = read(services.metrics)
    assert values["queries_refused"] == 1
    assert (values["queries_in_flight"], values["queries_waiting"]) == (0, 0)
    assert (values["ledger_valid"], values["accounts_frozen"]) == (1, 0)
    assert 0 <= values["heads_age_seconds"] < 3600
    assert 0 <= values["verification_age_seconds"] < 3600
