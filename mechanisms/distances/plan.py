"""The plan and price of a metric, from public facts alone.

There are two methods. *Contexts first* spends a share h of the loss on contexts and the rest on the
tables that they need. The *baseline* releases tables of all pairs and derives contexts from them.
For the distances of all m attributes, the baseline is chosen whenever its noise is at most the
public bound on that of contexts first: (1 − h)·C(m, 2) ≤ P̄, where P̄ bounds the number of tables:
C(m, 2) for ``mean_su``, and min(mk, C(m, 2)) for contexts of k attributes.
"""

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, prod

from accounting.composition import Step, repeated
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import GaussianNoise, LaplaceNoise, RhoBound, largest_within
from mechanisms.distances.entropies import EntropyGrid, entropy_grid
from mechanisms.distances.options import USUAL_SIZE, Context, Options, Rule
from mechanisms.model.domains import Attribute, Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.table_candidates import attribute_named, table_domain
from mechanisms.model.work import Work, times, together, work
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK, Deviation
from mechanisms.noise.rate import Rate
from mechanisms.utilities.entropy_table import check_rows
from mechanisms.utilities.tables import row_bound

#: The largest number of cells of all tables together, which bounds the size of an answer.
MAX_CELLS = 2_000_000
#: The most sets of attributes that one answer counts, and the most rows times counted sets. The
#: latter bounds the run time.
MAX_SUBSETS = 100_000
MAX_WORK = 20_000_000_000

Pair = tuple[int, int]


@dataclass(frozen=True)
class Plan:
    """The public plan: the participating attributes, the method, and the most that is released.

    ``attributes`` participate in the order of the domain; ``targets`` are the numbers of those
    whose values get distances. ``size`` is k, or 0 where contexts need no size. ``baseline`` lists
    the pairs of the baseline. If it is None, ``tables`` bounds the tables that contexts will need.
    """

    dataset: Dataset
    options: Options
    attributes: tuple[Attribute, ...]
    targets: tuple[int, ...]
    size: int
    tables: int
    baseline: tuple[Pair, ...] | None
    #: True if noisy tables of all pairs replace the requested selection of contexts, because their
    #: noise is no larger than that of the tables which a selection leaves.
    cheaper: bool = False

    @property
    def levels(self) -> tuple[int, ...]:
        return tuple(len(attribute.levels) for attribute in self.attributes)

    @property
    def rows(self) -> int:
        """N: the public number of rows, or the public bound on it."""
        return row_bound(self.dataset)

    @property
    def replace(self) -> bool:
        return self.dataset.neighbouring is NeighbouringRelation.REPLACE

    def others(self, target: int) -> tuple[int, ...]:
        """The candidates for the context of ``target``, in order."""
        return tuple(i for i in range(len(self.attributes)) if i != target)

    def work(self, loss: PrivacyLoss) -> Work:
        """The public work of learning the metric at this loss."""
        levels, m = self.levels, len(self.levels)
        pairs = comb(m, 2) if len(self.targets) > 1 else m - 1
        cells = sum(levels) ** 2
        tables = together(
            work("pairs of attributes", self.rows * pairs, pairs),
            times(work("noisy cells", cells, self.tables), GAUSSIAN_WORK if loss.unpriced else 1),
            work("metric", cells * m, len(self.targets)),
        )
        if self.baseline is not None:
            return tables
        return together(tables, self._context_work(pairs))

    def _context_work(self, pairs: int) -> Work:
        context, targets = self.options.context, len(self.targets)
        if context is Context.MEAN_SU:
            counted = work("pairs of attributes", self.rows * pairs, pairs)
            return together(counted, work("noisy cells", self.entropies))
        name, levels = f"contexts by {context} {self.options.sensitivity}", sum(self.levels)
        if context is Context.MAX_DEPENDENCY:
            sets = 2 * comb(len(self.levels), self.size + 1)
            return work(name, self.rows * (sets + targets * levels), 0)
        # The sensitivity function δ is computed at every distance up to the public bound on
        # records. At each distance it reads two counts per level. What a target takes at any number
        # of rows counts with its metric, because it grows with the same cells.
        return work(name, self.rows * (pairs + targets * levels), 0)

    def shares(self, loss: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The loss of contexts, rounded down, and that of tables, which takes the rest."""
        if self.baseline is not None:
            return PrivacyLoss(0), loss
        contexts, tables = loss.divided(self.options.context_share)
        if max(contexts.amounts[:-1]) < len(self.targets):
            raise UnsupportedQuery("the share of one context is less than the smallest loss")
        return contexts, tables

    def steps(self, loss: PrivacyLoss) -> tuple[Step, ...]:
        """The steps that spend ``loss``; they add up to it exactly."""
        contexts, tables = self.shares(loss)
        self.table_noise(tables, self.tables)
        law = "Gaussian noise: " if loss.unpriced else "noisy "
        if self.baseline is not None:
            what = f"{law}tables of {self.tables} pairs of attributes"
            if self.cheaper:
                what += (
                    ": the baseline in place of contexts first, for with these public sizes it is "
                    "not noisier and chooses contexts for nothing"
                )
            return (Step(what, tables, bound=self._table_bound(tables)),)
        drawn = self._context_steps(contexts)
        what = f"{law}tables of the pairs that contexts need"
        return (*drawn, Step(what, tables, bound=self._table_bound(tables)))

    def _table_bound(self, loss: PrivacyLoss) -> RhoBound:
        """The ρ of all tables: the fewer there are, the more of ε each of them takes."""
        fewest = self.fewest_tables
        noise = self.table_noise(loss, fewest)
        if isinstance(noise, Deviation):
            return GaussianNoise(noise.square, self._moved(fewest))
        return LaplaceNoise(noise.exponent(), self._moved(fewest), 1)

    @property
    def fewest_tables(self) -> int:
        """The fewest tables that contexts may need; one table may serve two targets."""
        if self.baseline is not None:
            return self.tables
        pairs = len(self.targets) * max(self.size, 1)
        return pairs if len(self.targets) == 1 else -(-pairs // 2)

    def _context_steps(self, loss: PrivacyLoss) -> tuple[Step, ...]:
        options = self.options
        if options.context is Context.MEAN_SU:
            # Called for its error: it refuses, before the charge, a loss that is too small for
            # exact noise.
            self.entropy_rate(self.context_loss(loss))
            bound = self._context_bound(self.context_loss(loss))
            return (Step(f"{self.entropies} noisy entropies, for the context", loss, bound=bound),)
        for share in set(loss.shares(len(self.targets))):
            options.selector.steps(self.context_loss(share), self.draws, "one_shot")
        what = f"context of an attribute by {options.context}: {options.selector.title.lower()}"
        return repeated(
            what,
            loss,
            len(self.targets),
            lambda one: self._context_bound(self.context_loss(one)),
        )

    def context_loss(self, share: PrivacyLoss) -> PrivacyLoss:
        """The ε at which the context of one target is chosen, for its share of the charge.

        A share in ρ alone takes the largest ε whose ρ is at most the share. Contexts have no
        Gaussian noise, because their choice has a smaller ρ than that of their ε.
        Raises: UnsupportedQuery for a share that is too small.
        """
        if not share.unpriced:
            return share

        def femto(nano: int) -> int:
            return self._context_bound(PrivacyLoss(nano)).femto()

        nano = largest_within(femto, share.rho_femto)
        if not nano:
            raise UnsupportedQuery("the share of one context is less than the smallest loss")
        return PrivacyLoss(nano)

    def _context_bound(self, loss: PrivacyLoss) -> RhoBound:
        """The ρ of choosing one context at this ε."""
        if self.options.context is not Context.MEAN_SU:
            return self.options.selector.rho_bound(loss, self.draws)
        one = self.entropy_grid().sensitivity
        # The noise rate as a fraction, not as a ``Rate``, which would raise. The search for a loss
        # also tries losses that are too small for exact noise.
        rate = loss.epsilon() / (self.entropies * one)
        return LaplaceNoise(rate, self.entropies * one, one)

    @property
    def draws(self) -> int:
        """The number of draws for a context: of attributes, or of one set of them."""
        return 1 if self.options.context is Context.MAX_DEPENDENCY else self.size

    @property
    def entropies(self) -> int:
        """The number of entropies for ``mean_su``: of m attributes and of m − 1 pairs."""
        return 2 * len(self.attributes) - 1

    def entropy_grid(self) -> EntropyGrid:
        return entropy_grid(self.dataset)

    def entropy_rate(self, loss: PrivacyLoss) -> Rate:
        return Rate.of_counts(loss.epsilon_nano, self.entropies * self.entropy_grid().sensitivity)

    def table_noise(self, loss: PrivacyLoss, tables: int) -> Rate | Deviation:
        """The noise on every cell of this many tables: Gaussian for a loss in ρ alone."""
        if loss.unpriced:
            return Deviation.of(loss.rho_femto, self._moved(tables))
        return Rate.of_counts(loss.epsilon_nano, self._moved(tables))

    def _moved(self, tables: int) -> int:
        """How many cells one change moves by 1: one of each table, or two by a replacement."""
        return tables * (2 if self.replace else 1)


def plan(
    dataset: Dataset,
    options: Options,
    target: str | None,
    attributes: tuple[str, ...] | None = None,
) -> Plan:
    """The plan of the distances of ``target``, or of all participating attributes.

    Args:
        attributes: the participants; by default all but the class attribute. The target always
            participates, also if it is the class attribute.

    Raises: UnsupportedQuery when the dataset is no table of a fitting relation, lacks an attribute,
        has no possible context, or exceeds the public limits.
    """
    check_rows(row_bound(dataset))
    chosen = participants(dataset, attributes, target)
    if len(chosen) < 2:
        raise UnsupportedQuery("distances need a context: at least one other attribute")
    if options.context is Context.MEAN_SU:
        # Noisy tables of all pairs may replace the requested selection of contexts, and need no
        # public lower bound on the rows. The bound is required even then. Otherwise the number of
        # attributes would decide whether a query without this bound is refused.
        entropy_grid(dataset)
    targets = tuple(i for i, a in enumerate(chosen) if target is None or a.name == target)
    routed = _route(Plan(dataset, options, chosen, targets, 0, 0, None))
    _check_limits(routed)
    return routed


def participants(
    dataset: Dataset, names: tuple[str, ...] | None, target: str | None = None
) -> tuple[Attribute, ...]:
    """The target and the attributes with these names, in the domain's order.

    Without names all attributes but the class attribute. Raises: UnsupportedQuery for a name that
    the table does not have.
    """
    domain = table_domain(dataset)
    for name in (*(names or ()), *([] if target is None else [target])):
        attribute_named(dataset, name)
    return tuple(
        attribute
        for attribute in domain.attributes
        if attribute.name == target
        or (attribute.name in names if names else attribute.name != domain.class_attribute)
    )


def _route(bare: Plan) -> Plan:
    options, m = bare.options, len(bare.attributes)
    every = tuple(combinations(range(m), 2))
    with_target = tuple(pair for pair in every if bare.targets[0] in pair)
    whole = len(bare.targets) == m
    if options.context is Context.BASELINE:
        alone = not whole and options.rule in (Rule.MEAN_SU, Rule.MAX_RELEVANCE)
        pairs = with_target if alone else every
        size = _size(bare) if options.rule in (Rule.MAX_RELEVANCE, Rule.MAX_DEPENDENCY) else 0
        return replace(bare, size=size, tables=len(pairs), baseline=pairs)
    size = 0 if options.context is Context.MEAN_SU else _size(bare)
    most = min(len(bare.targets) * (size or m - 1), len(every))
    if whole and (1 - options.context_share) * len(every) <= most:
        return replace(bare, size=size, tables=len(every), baseline=every, cheaper=True)
    if size == m - 1:
        # The context consists of all other attributes. There is nothing to select, so no loss is
        # spent on it.
        return replace(bare, size=size, tables=size, baseline=with_target, cheaper=True)
    return replace(bare, size=size, tables=most)


def _size(bare: Plan) -> int:
    others = len(bare.attributes) - 1
    size = bare.options.context_size
    if size is None:
        return min(USUAL_SIZE, others)
    if size > others:
        raise UnsupportedQuery(
            "a context has at most all other attributes", supported={"context_size": others}
        )
    return size


def _check_limits(plan: Plan) -> None:
    levels = plan.levels
    pairs = plan.baseline or [
        pair for pair in combinations(range(len(levels)), 2) if set(pair) & set(plan.targets)
    ]
    cells = sum(levels[i] * levels[j] for i, j in pairs)
    cells += sum(levels[target] ** 2 for target in plan.targets)
    if cells > MAX_CELLS:
        raise UnsupportedQuery(
            "the tables of these attributes have too many cells", supported={"cells": MAX_CELLS}
        )
    counts = len(pairs)
    if plan.baseline is None and plan.options.context is Context.MAX_DEPENDENCY:
        # With one target, the counted sets are its contexts: k of the other attributes. With
        # several targets, they are all sets of k + 1 attributes, and each serves every target in
        # it.
        several = len(plan.targets) > 1
        m, k = len(levels), plan.size
        if comb(m - (not several), k + several) > MAX_SUBSETS:
            raise UnsupportedQuery(
                "there are too many subsets of this size", supported={"subsets": MAX_SUBSETS}
            )
        if prod(sorted(levels)[-k - 1 :]) >= 1 << 62:
            raise UnsupportedQuery("subsets of these attributes have too many combinations")
        # Each context, a subset of attributes, takes two tables of counts: one of the context
        # alone, and one with the target attribute added.
        counts += comb(m, k + 1) + comb(m, k) if several else 2 * comb(m - 1, k)
    if counts * plan.rows > MAX_WORK:
        raise UnsupportedQuery(
            "the public bound on rows is too large for so many pairs and subsets",
            supported={"rows": MAX_WORK // counts},
        )
