"""A pytest plugin: ``--branch-floor=95`` fails a run that covers too few branches of a package.

pytest-cov's own floor counts lines and branches of all packages together, so that many plain
lines can hide branches that no test takes.

Only the tests of these packages and of the queries are traced, without the longest, and of some
modules of certification the first cases, because tracing makes a test take half as long again or
longer. Branches that only other tests reach count as not covered.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

#: Branch coverage is measured for the tests whose ids begin with one of these.
TRACED = ("tests/unit/accounting/", "tests/unit/mechanisms/", "tests/unit/app/queries/")
#: Branch coverage is measured for the first two cases of each of these tests. They take the same
#: branches as the other cases.
PARTLY_TRACED = (
    "tests/evidence/certification/test_joint_influence.py",
    "tests/evidence/certification/test_objectives.py",
    "tests/evidence/certification/test_open_sums.py",
    "tests/evidence/certification/test_printed_sums.py",
    "tests/evidence/certification/test_tree_laws.py",
)
TRACED_CASES = 2
#: Long tests of whole probability laws. Their coverage is not measured, because other tests take
#: the same branches.
UNTRACED = (
    "tests/unit/app/queries/test_conversion_of_kinds.py",
    "tests/unit/app/queries/test_intervals.py",
    "tests/unit/mechanisms/kernels/graphs/test_egocentric.py",
    "tests/unit/mechanisms/kernels/test_dominance.py",
    "tests/unit/mechanisms/kernels/test_radix.py",
    "tests/unit/mechanisms/kernels/test_spans.py",
    "tests/unit/mechanisms/noise/test_geometric.py",
    "tests/unit/mechanisms/noise/test_noisy_max.py",
    "tests/unit/mechanisms/noise/test_race.py",
    "tests/unit/mechanisms/objectives/test_rates_sum.py",
    "tests/unit/mechanisms/selection/test_drawing.py",
    "tests/unit/mechanisms/selection/test_laws.py",
    "tests/unit/mechanisms/statistics/test_mean_intervals.py",
    "tests/unit/mechanisms/utilities/test_node_sensitivities.py",
)

_traced: pytest.StashKey[bool] = pytest.StashKey()
_cases: Counter[str] = Counter()

#: For each package: its name, covered branches, all branches, and the files with uncovered
#: branches. Filled at the end of the run.
_measured: list[tuple[str, int, int, list[str]]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--branch-floor", type=float, default=None, metavar="PERCENT")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that are traced: every worker collects all tests in the same order."""
    name = item.nodeid.partition("[")[0]
    if name.startswith(UNTRACED):
        pass
    elif name.startswith(TRACED):
        item.stash[_traced] = True
    elif item.get_closest_marker("slow") is not None:
        # The default run has no slow cases, and only its coverage is measured.
        pass
    elif name.startswith(PARTLY_TRACED):
        _cases[name] += 1
        item.stash[_traced] = _cases[name] <= TRACED_CASES


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Do not trace the collection, nor the process that hands out tests to workers.

    A trace doubles the time of a collection. What runs only while a module is imported does not
    count as covered.
    """
    if tracing := _tracing(session.config):
        tracing.pause()
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Pause the trace during each untraced test, its fixtures and the threads that they start."""
    tracing = _tracing(item.config)
    if tracing and tracing.started != is_traced(item):
        if tracing.started:
            tracing.pause()
        else:
            tracing.resume()


def _tracing(config: pytest.Config) -> Any:
    """What pytest-cov traces with in this process, if it does."""
    plugin = config.pluginmanager.getplugin("_cov")
    return plugin and plugin.cov_controller


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, bool, bool]:
    """Measure after pytest-cov, the inner wrapper, has joined the data of all workers."""
    result = yield
    floor = session.config.getoption("--branch-floor")
    if floor is not None and not hasattr(session.config, "workerinput"):
        _measured[:] = measure()
        if any(100 * covered < floor * total for _, covered, total, _ in _measured):
            session.testsfailed += 1
    return result


def is_traced(item: pytest.Item) -> bool:
    """True if the branches that ``item`` takes count."""
    return item.stash.get(_traced, False)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    floor = config.getoption("--branch-floor")
    for package, covered, total, files in _measured:
        share = 100 * covered / total if total else 100.0
        low = share < floor
        terminalreporter.write_line(
            f"branch coverage of {package}: {share:.1f} % of {total}"
            + (f", below {floor:g} %" if low else ""),
            red=low,
            green=not low,
        )
        for line in files if low else ():
            terminalreporter.write_line(f"  {line}")


def measure() -> list[tuple[str, int, int, list[str]]]:
    """Branches of each measured package, from the data file that the run has just written."""
    data = coverage.Coverage()
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "coverage.json")
        data.json_report(outfile=str(report))
        files = json.loads(report.read_text("utf-8"))["files"]
    covered: Counter[str] = Counter()
    total: Counter[str] = Counter()
    gaps: dict[str, list[str]] = {}
    for name, file in sorted(files.items()):
        package = Path(name).parts[0]
        covered[package] += file["summary"]["covered_branches"]
        total[package] += file["summary"]["num_branches"]
        if file["missing_branches"]:
            gaps.setdefault(package, []).append(f"{name}: {file['missing_branches']}")
    return [(name, covered[name], total[name], gaps.get(name, [])) for name in sorted(total)]
