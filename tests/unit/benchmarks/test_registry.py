"""The bench command lists benches, runs them, and judges their values by bars.

It compares rivals in rounds, saves results in files, and prints what it did.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.bench import BEFORE, Bar, Bench, Setting
from benchmarks.registry import BENCHES
from benchmarks.result import Measurement, Result, Verdict
from benchmarks.rounds import Rounds, wall
from tests.unit.benchmarks.small_experiments import EXPERIMENTS, broken, ratios

BAR = Bar("ours / rival", least=2.5)
GOOD = Bench("made.good", "Is it three times as fast?", ratios, 1.0, ("a rival",), (BAR,))
SLOW = Bench("made.slow", "Is it four times as fast?", ratios, 1.0, (), (Bar("ours / rival", 4),))
BEATEN = Bar("ours / before", least=0.95, before=True)
BESIDE = Bench("beside", "Is it as fast as before?", ratios, 1.0, (BEFORE,), (BAR, BEATEN))
BROKEN = Bench("broken", "Does it end?", broken, 1.0)
LACKING = Bench("lacking", "Is there a file?", ratios, 1.0, files=("nowhere.csv",))
MADE = (GOOD, SLOW, BESIDE, BROKEN, LACKING, *EXPERIMENTS)


def ran(folder: Path, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """The status, and what was saved."""
    status = main([*arguments, "--out", str(folder), "--data", str(folder)], MADE)
    (path,) = folder.glob("bench-*.json")
    benches: list[dict[str, Any]] = json.loads(path.read_text())["benches"]
    return status, benches


def test_without_names_it_lists(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path)], MADE) == 0
    listed = capsys.readouterr().out
    assert "made.good" in listed
    assert "beside a rival" in listed
    assert "ours / rival ≥ 2.5" in listed
    # The list has no experiments that reproduce papers, because another command runs them.
    assert "first" not in listed
    assert not list(tmp_path.iterdir())


def test_a_made_up_bench_runs_and_is_saved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, (saved,) = ran(tmp_path, "made.good")
    assert status == 0
    assert "holds  ours / rival ≥ 2.5: 3 ×" in capsys.readouterr().out
    assert saved["name"] == "made.good"
    assert saved["stored"]["rates"] == {"ours": [6.0] * 5, "rival": [2.0] * 5}
    (page,) = tmp_path.glob("bench-*.html")
    assert "made.good: Is it three times as fast?" in page.read_text()
    assert page.read_text().count("<circle") == 2
    assert [claim["verdict"] for claim in saved["claims"]] == [Verdict.HOLDS]


def test_a_bar_that_is_missed_fails_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A name stands for all that it begins."""
    status, saved = ran(tmp_path, "made", "--quick")
    assert status == 1
    assert "FAILS  ours / rival ≥ 4: 3 ×" in capsys.readouterr().out
    verdicts = [claim["verdict"] for one in saved for claim in one["claims"]]
    assert verdicts == [Verdict.HOLDS, Verdict.FAILS]


@pytest.mark.parametrize(("name", "why"), [("broken", "there is no"), ("lacking", "nowhere.csv")])
def test_what_cannot_run_fails_the_run(
    name: str, why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, (saved,) = ran(tmp_path, name)
    assert status == 1
    assert why in saved["failed"]
    assert f"{name} did not end" in capsys.readouterr().out


def test_the_tree_before_is_a_rival_where_a_bench_has_it(tmp_path: Path) -> None:
    status, (alone,) = ran(tmp_path / "alone", "beside")
    assert status == 0
    assert [claim["verdict"] for claim in alone["claims"]] == [Verdict.HOLDS, Verdict.OPEN]
    (tmp_path / "before" / "app").mkdir(parents=True)
    before = ("--before", str(tmp_path / "before"))
    status, (beside,) = ran(tmp_path / "beside", "beside", *before)
    assert status == 1
    assert [claim["verdict"] for claim in beside["claims"]] == [Verdict.HOLDS, Verdict.FAILS]
    for wrong in (["made", *before], ["beside", "--before", str(tmp_path)], ["nothing"]):
        with pytest.raises(SystemExit):
            main(wrong, MADE)


@pytest.mark.parametrize(
    ("value", "half", "verdict"),
    [
        (3.0, 0.0, Verdict.HOLDS),
        (2.0, 0.0, Verdict.FAILS),
        (3.0, 1.0, Verdict.OPEN),
        (2.0, 1.0, Verdict.OPEN),
        (2.0, 0.1, Verdict.FAILS),
        (float("nan"), 0.0, Verdict.FAILS),
    ],
)
def test_a_bar_fails_when_the_whole_interval_misses_it(
    value: float, half: float, verdict: Verdict
) -> None:
    assert Bar("x", least=2.5).verdict(Measurement(value, "", half)) is verdict
    assert Bar("x", most=-2.5).verdict(Measurement(-value, "", half)) is verdict


def test_a_bar_that_nothing_measures_fails_unless_it_says_why() -> None:
    def verdict(result: Result, quick: bool = False) -> Verdict:
        (claim,) = GOOD.judged(result, Setting(Path(), quick=quick))
        return claim.verdict

    assert verdict(Result()) is Verdict.FAILS
    assert verdict(Result(), quick=True) is Verdict.OPEN
    assert verdict(Result(unjudged={"ours / rival": "no disk"})) is Verdict.OPEN


def test_a_pattern_bounds_every_value_that_matches() -> None:
    bench = Bench("many", "Are all at least 2?", ratios, 1.0, (), (Bar("* / rival", least=2),))
    result = Result()
    for name, value in (("one / rival", 3), ("other / rival", 1), ("one / before", 0)):
        result.measure(name, value)
    outcome = {claim.says: claim.verdict for claim in bench.judged(result, Setting(Path()))}
    assert outcome == {"one / rival ≥ 2": Verdict.HOLDS, "other / rival ≥ 2": Verdict.FAILS}
    (missing,) = bench.judged(Result(), Setting(Path()))
    assert missing.verdict is Verdict.FAILS


def test_rounds_take_turns_and_ratios_are_of_a_round() -> None:
    """A machine that is ten times as slow for a while leaves the ratio as it is."""
    seen: list[str] = []

    def way(name: str, seconds: float) -> Any:
        def run() -> float:
            seen.append(name)
            return seconds * (10 if len(seen) > 6 else 1)

        return run

    rounds = Rounds.of("s", {"one": way("one", 3.0), "other": way("other", 2.0)}, 3, warm=1)
    assert seen == ["one", "other", "other", "one"] * 2
    assert rounds.values == {"one": [3.0, 3.0, 30.0], "other": [2.0, 2.0, 20.0]}
    assert rounds.ratio("one", "other") == 1.5
    assert rounds.median("one") == 3.0


def test_a_way_is_timed_without_its_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    assert wall(lambda: sleep(2.0), rest=64.0)() == 2.0


def test_every_bench_is_well_formed() -> None:
    names = [bench.name for bench in BENCHES]
    assert len(set(names)) == len(names)
    own = [bench for bench in BENCHES if not bench.paper]
    assert len(own) > 20
    for bench in own:
        assert bench.question.endswith("?")
        assert len({bar.value for bar in bench.bars}) == len(bench.bars)
        assert all(bar.least is not None or bar.most is not None for bar in bench.bars)
        assert any(bar.before for bar in bench.bars) == (BEFORE in bench.rivals)
    assert not [bench.name for bench in BENCHES if bench.paper and (bench.bars or bench.rivals)]
