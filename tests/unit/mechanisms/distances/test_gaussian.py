"""Distances with Gaussian noise on their tables, and contexts at the ε that a share of ρ pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accounting.composition import for_group, total, total_rho
from accounting.conversion import rho_limit
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from benchmarks import simulation
from benchmarks.data.tables import read_table
from benchmarks.distances.gaussian import TABLES, correlations
from benchmarks.distances.metric_evaluation import Truth
from benchmarks.rho import rho_of
from mechanisms.distances.accuracy import cell_noise_scale
from mechanisms.distances.learn import learn
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.tables import count_pairs, release_pairs
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.noise.rate import Rate
from mechanisms.selection import SELECTORS
from tests.support.contexts import context
from tests.support.data import data_file
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.distances.tables import LEVELS, planned, table

RHO = PrivacyLoss(0, 0, 24_356_000_000_007, 1)
WAYS: list[dict[str, Any]] = [
    {"context": "baseline", "rule": Rule.MEAN_SU},
    {"context": "mean_su"},
    *(
        {"context": context, "context_size": 1, "selector": SELECTORS[selector]}
        for context in ("max_relevance", "max_dependency")
        for selector in ("permute_and_flip", "exponential")
    ),
]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("target", ["y", None])
@pytest.mark.parametrize("options", WAYS)
def test_the_steps_are_the_charge_and_use_nearly_all_of_it(
    relation: str, target: str | None, options: dict[str, Any]
) -> None:
    dataset, records = table(relation)
    public = planned(dataset, target, **options)
    steps = public.steps(RHO)
    assert total(steps) == RHO
    assert total_rho(steps) == RHO.rho_femto
    for members in (1, 3):
        for step in for_group(steps, members):
            assert step.bound is not None
            assert step.bound.femto(members) <= step.rho_femto
            assert step.as_dict()["epsilon"] is None
    for step in steps[:-1]:
        # All steps but the last draw contexts, at the largest ε whose ρ fits the share of the step.
        assert step.bound is not None
        assert step.bound.femto() > step.rho_femto * 0.99
    learned = learn(context(records, public.dataset, RHO), public)
    assert [one.attribute.name for one in learned] == (list(LEVELS) if target is None else ["y"])


def test_released_tables_have_the_deviation_of_their_number() -> None:
    """σ² = P/ρ under replace, half of it under add/remove; eight standard errors of a variance."""
    loss = PrivacyLoss(0, 0, 5 * 10**13, 1)
    for relation, moves in (("replace", 2), ("add_remove", 1)):
        dataset, records = table(relation)
        public = planned(dataset, context="baseline", rule=Rule.MEAN_SU)
        exact = count_pairs(records, public, public.baseline or (), Inline())
        errors = []
        for seed in range(100):
            noisy = release_pairs(exact, public, loss, SeededRandomness(seed), Inline())
            errors += [(noisy.tables[pair] - one).ravel() for pair, one in exact.tables.items()]
        noise = np.concatenate(errors)
        square = moves * 4 / (2 * 0.05)
        assert noise.var() == pytest.approx(square, rel=8 * (2 / noise.size) ** 0.5)
        assert cell_noise_scale(public, loss) == pytest.approx(square**0.5, rel=1e-3)


def test_a_context_takes_the_largest_epsilon_of_its_share() -> None:
    dataset, _ = table("replace")
    for options in WAYS[1:]:
        public = planned(dataset, **options)
        share = PrivacyLoss(0, 0, 10**12, 1)
        loss = public.context_loss(share)
        assert (loss.unpriced, public.context_loss(loss)) == (0, loss)
        more = PrivacyLoss(loss.epsilon_nano + 1)
        assert public._context_bound(loss).femto() <= share.rho_femto
        assert public._context_bound(more).femto() > share.rho_femto
    # At the same ε the exponential mechanism costs less ρ than permute-and-flip. So it gets a
    # larger ε for the same share of ρ.
    by_selector = [planned(dataset, **options).context_loss(share) for options in WAYS[2:4]]
    assert by_selector[1].epsilon_nano > 1.9 * by_selector[0].epsilon_nano
    with pytest.raises(UnsupportedQuery):
        planned(dataset, **WAYS[2]).steps(PrivacyLoss(0, 0, 3, 1))


def test_too_little_noise_is_never_taken_for_fewer_tables() -> None:
    """The noise follows the number of released tables, and never costs more than the share."""
    dataset, _ = table("replace")
    public = planned(dataset, None, context="max_relevance", context_size=1)
    _, share = public.shares(RHO)
    for tables in range(public.fewest_tables, public.tables + 1):
        noise = public.table_noise(share, tables)
        assert isinstance(noise, Deviation)
        assert 2 * tables <= 2 * noise.square * share.rho_femto / 10**15


def test_55_tables_have_a_third_of_the_noise() -> None:
    """Under replace, the ρ of ε = 1 with δ_c = 10⁻⁶ beside ε = 1: standard deviations of a cell."""
    in_rho = PrivacyLoss(0, 0, rho_limit(NANO, ATTO // 10**6), 1)
    public = planned(table("replace")[0], context="baseline", rule=Rule.MEAN_SU)
    for tables, gain in ((55, 3.3), (231, 6.7)):
        noise, rate = (public.table_noise(one, tables) for one in (in_rho, PrivacyLoss(NANO)))
        assert isinstance(noise, Deviation)
        assert isinstance(rate, Rate)
        deviation = float(2 / rate.exponent() ** 2) ** 0.5
        assert deviation / float(noise.square) ** 0.5 == pytest.approx(gain, rel=0.02)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_rho_of_epsilon_1_is_worth_more_than_epsilon_2_5(name: str) -> None:
    """The metric of all attributes: the mean correlation with that without noise."""
    simulation.seed(1)
    truth = Truth(read_table(data_file(f"{name}.csv.gz").parent, name))
    options = Options(Context.MAX_RELEVANCE)
    ways = (rho_of(1), PrivacyLoss.parse("2.5"))
    gaussian, laplace = (correlations(truth, options, loss, 20).mean() for loss in ways)
    assert gaussian >= laplace
