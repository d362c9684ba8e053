"""Alert rules and the dashboard of Grafana name metrics that the service has, and see faults."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from app.telemetry.metrics import GAUGES, Metrics
from tests.architecture.imports import ROOT

RULES = yaml.safe_load((ROOT / "deploy/alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
BOARD = json.loads((ROOT / "deploy/grafana.json").read_text("utf-8"))


def names() -> set[str]:
    """The names of all series that a service at work exposes."""
    metrics = Metrics()
    metrics.observe("GET", "/healthz", 200, 0.01)
    text = metrics.exposition().decode()
    return {line.partition("{")[0].split()[0] for line in text.splitlines() if line[:1] != "#"}


def metrics_in(expressions: list[str]) -> set[str]:
    return {name for one in expressions for name in re.findall(r"privypurse_\w+", one)}


def test_every_rule_and_panel_names_metrics_that_exist() -> None:
    rules = [rule["expr"] for rule in RULES]
    panels = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    assert metrics_in(rules) <= names()
    assert metrics_in(panels) <= names()
    gauges = {f"privypurse_{name}" for name in GAUGES}
    assert gauges <= metrics_in(panels)


def test_every_metric_is_documented() -> None:
    section = (ROOT / "docs/operating.md").read_text("utf-8").partition("## Metrics and logs")[2]
    stems = {re.sub(r"_(bucket|count|sum|created|total|info)$", "", one) for one in names()}
    documented = set(re.findall(r"^- `(privypurse_\w+)`", section, re.MULTILINE))
    assert {re.sub(r"_(total|info)$", "", one) for one in documented} == stems


def test_every_rule_says_what_to_do_and_is_tested() -> None:
    tests: list[dict[str, Any]] = yaml.safe_load(
        (ROOT / "deploy/alerts_test.yml").read_text("utf-8")
    )["tests"]
    silent = {one["alertname"] for one in tests[0]["alert_rule_test"]}
    assert silent == {rule["alert"] for rule in RULES}
    assert all(len(rule["annotations"]["description"]) > 20 for rule in RULES)
    (count,) = tests[1]["promql_expr_test"][0]["exp_samples"]
    assert count["value"] == len(RULES)


def test_the_rules_see_faults_and_nothing_else() -> None:
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("needs promtool: apt-get install prometheus")
    for arguments in (
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
        ["check", "config", "--syntax-only", "prometheus.yml"],
    ):
        report = subprocess.run(
            [promtool, *arguments], cwd=ROOT / "deploy", capture_output=True, text=True, check=False
        )
        assert report.returncode == 0, report.stdout + report.stderr
