"""The judges of claims: their verdicts on numbers that bear them out, and on seeded wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from benchmarks.bench import Setting
from benchmarks.data.tables import PLANTED, planted
from benchmarks.distances.metric_evaluation import Truth
from benchmarks.reproduction.experiments import (
    clusters,
    context_effects,
    distances,
    learning_times,
    noise_orders,
    private_sql,
    salaries,
    tree_search,
)
from benchmarks.reproduction.experiments import planted_contexts as contexts
from benchmarks.reproduction.experiments.gowalla_counts import LEVELS
from benchmarks.result import FAILS, HOLDS, OPEN, OTHERWISE, Difference, Estimate, Result, Verdict
from mechanisms.distances.options import Context, Options
from mechanisms.statistics.prefix_sum import local_changes
from mechanisms.statistics.smoothness import smooth_beta

SETTING, FULL = Setting(Path()), Setting(Path(), full=True)
NOISY = np.random.default_rng(1).normal(size=40)


@pytest.mark.parametrize(
    ("value", "half", "verdict"),
    [(0.3, 0.1, HOLDS), (-0.04, 0.01, HOLDS), (-0.2, 0.05, FAILS), (-0.1, 0.2, OPEN)],
)
def test_to_be_less_by_little_is_to_be_no_less(value: float, half: float, verdict: Verdict) -> None:
    assert Difference.no_less(value, half, equal=0.1).verdict is verdict


def never(*_: object) -> float:
    raise AssertionError("the numbers decide: nothing more is drawn")


def verdicts(result: Result) -> list[Verdict]:
    return [claim.verdict for claim in result.claims]


# ---- claims about planted contexts -------------------------------------------------------------


@pytest.mark.parametrize("members", [[0], [1, 3], [0, 2, 4]])
def test_the_chance_of_all_wanted_is_that_of_draws_in_turn(members: list[int]) -> None:
    weights = np.array([0.2, 1.0, 3.0, 0.5, 2.0])
    chance = 0.0
    for order in permutations(members):
        rest, product = weights.sum(), 1.0
        for one in order:
            product *= weights[one] / rest
            rest -= weights[one]
        chance += product
    assert contexts.chance_of_all(weights, members) == pytest.approx(chance)


def test_what_has_no_rival_is_certain() -> None:
    assert contexts.chance_of_all(np.array([1.0, 0.0, 0.5]), [0, 2]) == 1


@pytest.mark.parametrize("name", PLANTED)
def test_planted_attributes_follow_their_clusters(name: str) -> None:
    sizes, ones = PLANTED[name]
    table = planted(name, 0.0)
    assert np.bincount(table.classes).tolist() == list(sizes)
    codes = [table.records.codes[f"x{number}"] for number in range(11)]
    for one, column in zip(ones, codes, strict=False):
        assert (column == (table.classes == one)).all()
    # The other attributes are random bits. In table C, two of them agree with a cluster in 65 % of
    # the rows.
    for number, column in enumerate(codes[len(ones) :]):
        agree = float((column == (table.classes == number % 2)).mean())
        assert agree == pytest.approx(0.65 if name == "C" and number < 2 else 0.5, abs=0.03)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_contexts_are_found_without_noise_and_missed_in_it(name: str) -> None:
    table = planted(name, 0.1)
    size = len(contexts.planted_context(table))
    for context in contexts.DRAWN:
        little, much = contexts.exact_chances(table, context, [1e-9, 1e4])
        # With almost no ε, the chance to draw the planted context is that of pure guessing: one of
        # all sets of its size among ten attributes.
        assert little == pytest.approx(1 / {3: 120, 4: 210}[size], rel=1e-3)
        assert much == pytest.approx(1)
    options = Options(Context.MAX_RELEVANCE, context_size=size, context_share=contexts.HALF)
    assert contexts.hits(Truth(table), options, 1e4, 3) == [1, 1, 1]


def test_planted_contexts_are_judged_by_their_chances() -> None:
    def judged(chances: list[float], noisy: list[float]) -> list[Verdict]:
        result = Result()
        contexts.judge(result, SETTING, "a table", chances, noisy, never)
        return verdicts(result)

    noisy = (0.2 + 0.01 * NOISY).tolist()
    assert judged([0.5, 0.95], noisy) == [HOLDS, HOLDS]
    assert judged([0.5, 0.5], noisy) == [FAILS, HOLDS]
    assert judged([0.0, 0.1], noisy) == [FAILS, FAILS]


# ---- claims about learned distances ------------------------------------------------------------


def test_a_fall_of_an_error_is_seen() -> None:
    def judged(last: float) -> Verdict:
        result = Result()
        first = 1 + 0.01 * NOISY
        context_effects.judge_fall(result, SETTING, "L1", first, last - 0.01 * NOISY, never)
        (verdict,) = verdicts(result)
        return verdict

    assert judged(0.5) is HOLDS
    assert judged(0.999) is FAILS
    assert judged(1.5) is FAILS


def test_the_share_of_the_paper_is_held_against_the_best() -> None:
    def judged(setting: Setting, taken: float, spread: float) -> Verdict:
        result, middles, rng = Result(), {"0.3": taken, "0.7": 0.9}, np.random.default_rng(2)

        def draw(share: str) -> float:
            return middles[share] + spread * float(rng.normal())

        runs = {share: np.array([draw(share) for _ in range(40)]) for share in middles}
        context_effects.judge_shares(result, setting, "a table", runs, draw)
        (verdict,) = verdicts(result)
        return verdict

    assert judged(SETTING, 0.89, spread=0.01) is HOLDS
    assert judged(SETTING, 0.95, spread=0.01) is HOLDS
    assert judged(SETTING, 0.6, spread=0.01) is FAILS
    assert judged(SETTING, 0.75, spread=0.3) is OPEN
    assert judged(FULL, 0.75, spread=0.3) is FAILS
    assert judged(FULL, 0.87, spread=0.3) is HOLDS


def test_distances_that_are_near_are_told_from_those_that_are_not() -> None:
    def judged(middle: float, setting: Setting = SETTING, draw: float | None = None) -> Verdict:
        result = Result()
        runs = (middle + 0.02 * NOISY).tolist()
        more = never if draw is None else lambda: draw
        distances.judge_near(result, setting, "near", "", runs, more, "few records")
        (verdict,) = verdicts(result)
        return verdict

    assert judged(0.95) is HOLDS
    assert judged(0.7) is FAILS
    assert judged(0.7, FULL) is FAILS


def test_a_private_choice_of_contexts_is_held_against_the_baseline() -> None:
    def judged(gap: float) -> Verdict:
        result, gaps = Result(), [gap + 0.02 * NOISY, gap - 0.02 * NOISY]
        distances.judge_baseline(result, SETTING, "a table", gaps, never)
        (verdict,) = verdicts(result)
        return verdict

    assert judged(0.2) is HOLDS
    assert judged(0.01) is FAILS
    assert judged(-0.2) is FAILS


def test_sizes_of_contexts_matter_where_the_best_is_far_from_the_worst() -> None:
    def judged(apart: float) -> Verdict:
        result = Result()
        runs = {1: 0.8 - apart + 0.01 * NOISY, 2: 0.8 + 0.01 * NOISY, 3: 0.79 - 0.01 * NOISY}
        context_effects.judge_sizes(result, SETTING, "a table", runs, never)
        (verdict,) = verdicts(result)
        return verdict

    assert judged(0.02) is HOLDS
    assert judged(0.2) is FAILS


@pytest.mark.parametrize("kind", clusters.MEASURES)
def test_a_private_metric_is_near_where_it_is_hardly_worse(kind: str) -> None:
    def judged(best: float) -> Verdict:
        result, worse = Result(), dict.fromkeys(clusters.WAYS, 0.1 + 0.01 * NOISY)
        runs = worse | {"max_relevance": best + 0.01 * NOISY, "DILCA_M": np.array([0.8])}
        clusters.judge_near(result, SETTING, "a table", kind, runs, never)
        (verdict,) = verdicts(result)
        return verdict

    assert judged(0.9) is HOLDS
    assert judged(0.78) is HOLDS
    assert judged(0.6) is FAILS


def test_clusters_are_judged_by_each_measure() -> None:
    def judged(*gaps: float) -> list[Verdict]:
        result = Result()
        runs = np.array(gaps) + 0.005 * NOISY[:, None]
        clusters.judge_k_means(result, SETTING, "a table", runs, never)
        return verdicts(result)

    # The third measure is the variance within clusters, of which less is better.
    assert judged(0.5, 0.5, -0.1) == [HOLDS, HOLDS, HOLDS]
    assert judged(-0.5, 0.5, 0.1) == [FAILS, HOLDS, FAILS]
    assert judged(0.5, 0.03, -0.001) == [HOLDS, FAILS, FAILS]


def test_the_slowest_way_is_told_table_by_table() -> None:
    def judged(*seconds: float) -> Verdict:
        result = Result()
        ways = dict.fromkeys(learning_times.WAYS, 1.0) | {distances.OWN: 99.0}
        tables = {str(i): ways | {"max_dependency": one} for i, one in enumerate(seconds)}
        learning_times.judge(result, tables)
        (verdict,) = verdicts(result)
        return verdict

    # The service's own method, here the slowest with 99 seconds, is not one of the paper's methods
    # and does not count.
    assert judged(2.0, 3.0) is HOLDS
    assert judged(2.0, 0.5) is OTHERWISE
    assert judged(0.9, 0.5) is FAILS


# ---- claims about top k by noisy views ---------------------------------------------------------


def test_dampening_is_held_against_noisy_views_by_recall_and_by_loss() -> None:
    epsilons = [1.0, 10.0, 1e7]

    def judged(
        local: list[float],
        views: list[float],
        setting: Setting = SETTING,
        spread: float = 0.01,
        draw: Callable[[], float] = never,
    ) -> list[Verdict]:
        result = Result()
        lines = {"local": local, "shifted": [0.1, 0.1, 0.1], private_sql.RIVAL: views}
        runs = views[1] + spread * NOISY
        private_sql.judge(result, setting, "a graph", epsilons, lines, runs, draw)
        return verdicts(result)

    assert judged([0.5, 0.9, 1.0], [0.1, 0.1, 0.95]) == [HOLDS, HOLDS]
    # The first claim fails if local dampening has no clearly larger recall than noisy views at an ε
    # of practical use. The second fails if it reaches a recall of 0.9 at no smaller ε.
    assert judged([0.1, 0.12, 1.0], [0.1, 0.1, 0.95]) == [FAILS, FAILS]
    assert judged([0.1, 0.2, 1.0], [0.1, 0.9, 0.95]) == [FAILS, FAILS]
    # Neither method reaches a recall of 0.9 at any ε.
    assert judged([0.5, 0.8, 0.85], [0.1, 0.1, 0.1]) == [HOLDS, FAILS]
    noisy = [0.5, 0.9, 1.0], [0.1, 0.85, 0.95]
    assert judged(*noisy, spread=0.5)[0] is OPEN
    assert judged(*noisy, FULL, 0.5, lambda: 0.1)[0] is HOLDS


# ---- claims about searches of trees ------------------------------------------------------------


def fitness_of(name: str, means: dict[str, float], setting: Setting = SETTING) -> list[Verdict]:
    """The verdicts on a search of these mean fitnesses: that local beats global, comes near the
    best, what it gains over either baseline, and that global is flat."""
    ways = {way: means[way] for way in ("local", "global", *tree_search.BASELINES)}
    runs = {
        (way, e): (middle + 0.02 * NOISY[:20] * (1 + number)).tolist()
        for e in (0.01, 0.5, 2.0)
        for number, (way, middle) in enumerate(ways.items())
    }
    runs["global", 1e6] = (means["best"] + 0.02 * NOISY[20:]).tolist()
    result = Result()
    tree_search.judge(result, setting, name, runs, never)
    return verdicts(result)


def test_a_search_is_judged_by_differences_of_fitness() -> None:
    good = {"local": 4.1, "global": 2.5, "best": 4.2, "id3": 3.5, "id3 of the paper": 3.8}
    assert fitness_of("nltcs", good) == [HOLDS] * 5
    # In the first case the local search is no better than the global one and far from the best. In
    # the second it gains less than 6 % over the baseline ID3, and in the third it is below it.
    assert fitness_of("nltcs", good | {"local": 2.6})[:2] == [FAILS, FAILS]
    assert fitness_of("nltcs", good | {"id3": 3.95})[2] is OTHERWISE
    assert fitness_of("nltcs", good | {"id3": 4.2})[2] is FAILS
    # The paper itself states one exception. On the table acs, the search is not above the baseline
    # ID3.
    assert fitness_of("acs", good | {"id3": 4.12})[2] is HOLDS
    assert fitness_of("acs", good)[2] is FAILS


def test_a_search_that_rises_with_the_loss_is_not_flat() -> None:
    runs = {(way, e): [3.0 + 0.01 * one for one in NOISY] for way in ("local", "id3")
            for e in (0.01, 2.0)}  # fmt: skip
    runs |= {("id3 of the paper", e): runs["id3", e] for e in (0.01, 2.0)}
    runs |= {("global", 0.01): [2.5] * 40, ("global", 2.0): [4.0] * 40, ("global", 1e6): [4.2] * 40}
    result = Result()
    tree_search.judge(result, SETTING, "nltcs", runs, never)
    assert verdicts(result)[-1] is FAILS


def test_measure_c_is_near_zero_or_not() -> None:
    def judged(middle: float) -> Verdict:
        result = Result()
        runs = (middle + 0.01 * NOISY).tolist()
        tree_search.judge_near_zero(result, SETTING, "nltcs", runs, never)
        (verdict,) = verdicts(result)
        return verdict

    assert judged(0.02) is HOLDS
    assert judged(0.3) is FAILS


# ---- claims about noise ------------------------------------------------------------------------


def test_noise_of_levels_is_about_that_of_smooth_sensitivity_at_almost_all_places_or_not() -> None:
    def judged(far: int, times: float) -> Verdict:
        smooth = np.ones(1000)
        levels = np.where(np.arange(1000) < far, times, 1.0)
        result = Result()
        seconds = {"smooth": 1.0, salaries.LEVELS: 1.0}
        salaries.judge(result, {"smooth": smooth, salaries.LEVELS: levels}, seconds)
        return verdicts(result)[0]

    assert judged(1000, 1.2) is HOLDS
    assert judged(3, 1e9) is OTHERWISE
    assert judged(30, 1e9) is FAILS


def test_the_noise_of_this_service_is_by_smooth_sensitivity_or_by_the_largest_value() -> None:
    values = np.array([0.0, 0.0, 0.5, 2.0, 3.0, 1e6])
    loss = PrivacyLoss(NANO, ATTO // (2 * len(values)))
    beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
    assert beta is not None
    lines = salaries.served(values, range(len(values) + 1), loss)
    smooth = salaries.smooth_bounds(local_changes(np.rint(2 * values).astype(np.int64)), beta)
    # The noise has the scale 2S/ε, where S is the smooth sensitivity. The array ``smooth`` holds S
    # in units of one half, so at ε = 1 it equals this scale.
    assert lines[salaries.OWN] == pytest.approx(smooth, rel=1e-6)
    assert (lines[salaries.OWN][:5] < 2e6).all()
    assert lines[salaries.OWN_LAPLACE] == pytest.approx(np.full(7, 1e6))
    assert lines[salaries.OWN] != pytest.approx(smooth * 1.0001, rel=1e-6)


# ---- claims about the order of mechanisms ------------------------------------------------------


def measured(smooth: float, half: float = 0.0) -> list[dict[str, Estimate]]:
    return [{LEVELS: (1.0, 0.0), "smooth_sensitivity": (smooth, half)}] * 2


def test_the_order_by_error_and_by_time_follows_the_numbers() -> None:
    def judged(by_error: float, by_time: float) -> list[Verdict]:
        result = Result()
        equal = np.log10(noise_orders.EQUAL)
        two = (Difference(np.log10(one), 0.01, equal) for one in (by_error, by_time))
        noise_orders.judge(result, "a rival", *two)
        return verdicts(result)

    assert judged(2.0, 3.0) == [HOLDS, HOLDS, HOLDS]
    assert judged(0.5, 3.0) == [FAILS, HOLDS, HOLDS]
    assert judged(2.0, 1.0) == [HOLDS, FAILS, HOLDS]
    assert judged(0.5, 1.1) == [FAILS, FAILS, FAILS]


def test_errors_and_seconds_are_compared_by_their_ratios() -> None:
    rival = "smooth_sensitivity"
    assert noise_orders.more_accurate(measured(100.0), rival).value == pytest.approx(2)
    assert noise_orders.more_accurate(measured(0.1), rival).verdict is FAILS
    assert noise_orders.more_accurate(measured(1.3, half=1.0), rival).verdict is OPEN
    assert noise_orders.quicker(np.array([[1.0, 2.0], [10.0, 20.0]]), 1) == pytest.approx(1)
    assert noise_orders.growth([10, 100, 1000], [2.0, 200.0, 20_000.0]) == pytest.approx(2)


def test_the_mechanism_that_a_query_gets_is_marked_among_those_in_order() -> None:
    result = Result()
    noise_orders.order_table(result, "error", [10, 100], [[(1.0, 0.0)] * 2] * 4)
    marked = [str(row[0]) for row in result.tables[0].rows]
    assert [name for name in marked if "this service" in name] == [
        "ladder, default of this service"
    ]
    assert len(marked) == len(noise_orders.WAYS)
