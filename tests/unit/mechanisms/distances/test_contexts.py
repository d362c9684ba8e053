"""Draws and releases of distances follow their laws: rates, relations and shares of the loss."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import exp, log2
from typing import Any

import numpy as np
import pytest

from accounting.composition import total
from accounting.privacy_loss import PrivacyLoss
from mechanisms.distances.contexts import ContextSampler, draw_contexts, mean_su
from mechanisms.distances.learn import learn
from mechanisms.distances.options import Options, Rule
from mechanisms.distances.plan import plan
from mechanisms.distances.rules import read_contexts
from mechanisms.distances.tables import count_pairs, release_pairs
from mechanisms.distances.uncertainty import table_uncertainty
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.selection import SELECTORS
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.distances.tables import LEVELS, ROWS, planned, table
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, p_value

SHARE = PrivacyLoss.parse("0.6")


@pytest.mark.long
@pytest.mark.parametrize(
    "relation, sensitivity, context, k",
    [
        # The default run tests four of the eight combinations of relation, sensitivity and context.
        # They contain every pair of values of any two of these.
        ("replace", Sensitivity.GLOBAL, "max_relevance", 1),
        ("replace", Sensitivity.LOCAL, "max_dependency", 2),
        ("add_remove", Sensitivity.GLOBAL, "max_dependency", 2),
        ("add_remove", Sensitivity.LOCAL, "max_relevance", 1),
        pytest.param("replace", Sensitivity.GLOBAL, "max_dependency", 2, marks=pytest.mark.slow),
        pytest.param("replace", Sensitivity.LOCAL, "max_relevance", 1, marks=pytest.mark.slow),
        pytest.param("add_remove", Sensitivity.GLOBAL, "max_relevance", 1, marks=pytest.mark.slow),
        pytest.param("add_remove", Sensitivity.LOCAL, "max_dependency", 2, marks=pytest.mark.slow),
    ],
)
def test_contexts_are_drawn_by_their_law(
    relation: str, sensitivity: Sensitivity, context: str, k: int
) -> None:
    """P(S) ∝ exp(ε·q/(2φ(N))) under replace, exp(ε·q/φ(N_max)) under add/remove, exp(ε·D/2)."""
    dataset, records = table(relation)
    public = planned(dataset, context=context, context_size=k, sensitivity=sensitivity,
                     selector=SELECTORS["exponential"])  # fmt: skip
    drawing = ContextSampler(records, public, Inline())
    randomness, scored = SeededRandomness(7), drawing.scored(4)
    assert drawing.draw(4, SHARE, SeededRandomness(7)) in scored[0]
    drawn = Counter(drawing.choose(scored, SHARE, randomness) for _ in range(4000))
    halved = 1 if sensitivity is Sensitivity.GLOBAL and relation == "add_remove" else 2
    if sensitivity is Sensitivity.GLOBAL:
        bound = ROWS if relation == "replace" else 2 * ROWS
        phi = bound * log2(bound) - (bound - 1) * log2(bound - 1)
        scores = [q_of(records, subset) / phi for subset in combinations(range(4), k)]
    else:
        scores = [score / 2**20 for score in drawing.scores(4, 20)]
    weights = [exp(0.6 * score / halved) for score in scores]
    law = [weight / sum(weights) for weight in weights]
    listed = list(combinations(range(4), k))
    assert set(drawn) <= set(listed)
    observed = np.array([drawn[subset] for subset in listed])
    assert p_value(observed, law) > FALSE_ALARM


def q_of(records: Any, subset: tuple[int, ...], target: int = 4) -> float:
    """−N·H(target | subset), by definition."""
    names = list(LEVELS)
    rows = list(zip(*(records.codes[names[i]].tolist() for i in (*subset, target)), strict=True))
    joint, alone = Counter(rows), Counter(row[:-1] for row in rows)
    return sum(n * log2(n) for n in joint.values()) - sum(n * log2(n) for n in alone.values())


def test_the_paths_of_subsets_and_of_pairs_agree() -> None:
    """Sets of one attribute are the attributes: same u, same δ, for one target or all."""
    for relation in ("replace", "add_remove"):
        dataset, records = table(relation)
        for target in ("y", None):
            single = planned(dataset, target, context_size=1)
            sets = planned(dataset, target, context="max_dependency", context_size=1)
            for number in single.targets:
                u, delta = ContextSampler(records, single, Inline()).measured(number)
                v, other = ContextSampler(records, sets, Inline()).measured(number)
                assert u.tolist() == v.tolist()
                t = np.arange(2 * ROWS + 3)
                assert delta.at(t).tolist() == other.at(t).tolist()


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("target", ["y", None])
@pytest.mark.parametrize(
    "options",
    [
        {"context": "mean_su"},
        {"context": "max_relevance", "context_size": 2, "context_share": Fraction(1, 7)},
        {"context": "max_relevance", "context_size": 1},
        {"context": "max_dependency", "context_size": 1},
        {"context": "max_dependency", "context_size": 4},
        {"context": "baseline", "rule": Rule.NOT_REDUNDANT},
        {"context": "baseline", "rule": Rule.MEAN_SU},
    ],
)
def test_steps_add_up_and_tables_are_shared(
    relation: str, target: str | None, options: dict[str, Any]
) -> None:
    dataset, records = table(relation)
    public = planned(dataset, target, **options)
    for loss in (PrivacyLoss(10**9), PrivacyLoss(123_456_789), PrivacyLoss(10**9, 7)):
        assert total(public.steps(loss)) == loss
    learned = learn(context(records, public.dataset, PrivacyLoss(10**9)), public)
    assert [one.attribute.name for one in learned] == (list(LEVELS) if target is None else ["y"])
    used = {frozenset((one.attribute.name, x.name)) for one in learned for x in one.context}
    assert len(used) <= public.tables


def test_released_tables_have_the_noise_of_their_number() -> None:
    """The mean distance of Laplace noise of scale 2P/ε₂ is nearly that scale; half as much for
    add/remove. A false alarm is eight standard errors away."""
    for relation, moves in (("replace", 2), ("add_remove", 1)):
        dataset, records = table(relation)
        public = planned(dataset, context="baseline", rule=Rule.MEAN_SU)
        exact = count_pairs(records, public, public.baseline or (), Inline())
        loss, errors = PrivacyLoss.parse("0.4"), []
        for seed in range(400):
            noisy = release_pairs(exact, public, loss, SeededRandomness(seed), Inline())
            for pair, counts in noisy.tables.items():
                errors.append(np.abs(counts - exact.tables[pair]).ravel())
        noise = np.concatenate(errors)
        scale = moves * 4 / 0.4
        assert noise.mean() == pytest.approx(scale, abs=8 * scale / noise.size**0.5)


def test_mean_su_finds_the_truth_with_much_loss() -> None:
    for relation in ("replace", "add_remove"):
        dataset, records = table(relation)
        public = planned(dataset, context="mean_su")
        exact = count_pairs(records, public, [(x, 4) for x in range(4)], Inline())
        su = {x: table_uncertainty(exact.of(x, 4)) for x in range(4)}
        true = tuple(x for x in su if su[x] >= sum(su.values()) / 4)
        loss = PrivacyLoss.parse("1000000")
        assert draw_contexts(context(records, public.dataset, loss), public) == {4: true}


def test_entropies_without_exact_noise_are_refused_before_the_charge() -> None:
    labels = tuple(map(str, range(40)))
    attributes = tuple(CategoricalAttribute(f"a{i}", labels) for i in range(100))
    domain = TableDomain(attributes, rows=10**6)
    dataset = Dataset("wide", NeighbouringRelation.REPLACE, domain)
    public = planned(dataset, "a0", context="mean_su", context_share=Fraction(1, 1000))
    assert total(public.steps(PrivacyLoss(10**9))) == PrivacyLoss(10**9)
    with pytest.raises(UnsupportedQuery):
        public.steps(PrivacyLoss(1000))


def test_contexts_by_noisy_entropies_read_projected_ones() -> None:
    """A noisy H(X) may exceed log₂ of the number of levels of X, which no true entropy does.

    It is clamped before it is used: otherwise I(X; Y) = H(X) + H(Y) − H(X, Y) would be too large,
    and an attribute X that is independent of the target Y would enter its context.
    """
    dataset, _ = table("replace")
    public = planned(dataset, context="mean_su")
    # The entropies H in bits are those of the target y, of the attributes a, b, c and d, and of
    # each attribute together with y. The 3 bits of a are too many for its two levels. Only b
    # informs about y: H(b, y) is below H(b) + H(y).
    entropies = np.array([1.0, 3.0, 1.0, 0.5, 0.5, 2.0, 1.5, 1.5, 1.5])
    steps = np.ldexp(entropies, public.entropy_grid().bits).astype(np.int64)
    loss = PrivacyLoss.parse("1000000")
    assert mean_su(steps, public, loss, SystemRandomness(), Inline()) == {4: (1,)}


def test_rules_read_what_is_there() -> None:
    """On exact counts every rule follows its definition."""
    dataset, records = table("replace")
    for rule in Rule:
        public = planned(dataset, None, context="baseline", rule=rule, context_size=2)
        exact = count_pairs(records, public, public.baseline or (), Inline())
        contexts = read_contexts(public, exact)
        su = {
            (x, y): table_uncertainty(exact.of(x, y)) for x in range(5) for y in range(5) if x != y
        }
        for y, drawn in contexts.items():
            others = [x for x in range(5) if x != y]
            by_su = sorted(others, key=lambda x, y=y: (-su[x, y], x))
            gain = {x: q_of(records, (x,), y) for x in others}
            best = sorted(others, key=lambda x, gain=gain: (-gain[x], x))
            if rule is Rule.MEAN_SU:
                mean = sum(su[x, y] for x in others) / 4
                assert drawn == tuple(x for x in others if su[x, y] >= mean)
            elif rule is Rule.NOT_REDUNDANT:
                expected: list[int] = []
                for x in by_su:
                    if all(su[x, y] > su[x, k] for k in expected):
                        expected.append(x)
                assert list(drawn) == expected
                assert drawn[0] == by_su[0]
            elif rule is Rule.MAX_RELEVANCE:
                assert list(drawn) == best[:2]
            else:
                assert drawn[0] == best[0]
                assert len(set(drawn)) == 2


def test_the_whole_metric_goes_the_less_noisy_way() -> None:
    """(1 − h)·C(m, 2) ≤ P̄ with P̄ = min(mk, C(m, 2)), all of it public."""
    dataset, _ = table("replace")
    for k in range(1, 5):
        for h in (Fraction(1, 10), Fraction(3, 10), Fraction(6, 10), Fraction(99, 100)):
            public = planned(dataset, None, context_size=k, context_share=h)
            baseline = (1 - h) * 10 <= min(5 * k, 10)
            assert (public.baseline is not None) == baseline
            assert public.tables == (10 if baseline else min(5 * k, 10))
    assert planned(dataset, None, context="mean_su").baseline is not None
    # A single target has its contexts chosen before tables are released, unless every other
    # attribute is in its context anyway.
    assert planned(dataset, "y", context_size=3).baseline is None
    assert planned(dataset, "y", context_size=4).baseline is not None


def test_public_limits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from mechanisms.distances import plan as module

    dataset, _ = table("replace")
    options = Options(module.Context.MAX_DEPENDENCY, context_size=2)
    for name, value in (("MAX_CELLS", 30), ("MAX_SUBSETS", 5), ("MAX_WORK", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            with pytest.raises(UnsupportedQuery):
                plan(dataset, options, "y")
    assert plan(dataset, options, "y").size == 2
