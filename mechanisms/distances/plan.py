"""The plan and price of a metric, from public facts alone.

There are two methods. *Contexts first* spends a share h of the loss on contexts and the rest on the
tables that they need. The *baseline* releases tables of all pairs and derives contexts from them.
For the distances of all m attributes, the baseline is chosen whenever its noise is at most the
public bound on that of contexts first: (1 − h)·C(m, 2) ≤ P̄, where P̄ bounds the number of tables:
C(m, 2) for ``mean_su``, and min(mk, C(m, 2)) for contexts of k attributes.
"""

from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import comb, prod

from accounting.composition import Step, repeated
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import GaussianNoise, LaplaceNoise, RhoBound, largest_within
from mechanisms.distances.entropies import EntropyGrid, entropy_grid
from mechanisms.distances.options import USUAL_SIZE, Context, Options, Rule
from mechanisms.model.domains import Attribute, Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.level_tables import rows_read
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.table_candidates import attribute_named, table_domain
from mechanisms.model.work import NOTHING, Work, times, together, work
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK, Deviation
from mechanisms.noise.rate import Rate
from mechanisms.utilities.entropy_table import check_rows
from mechanisms.utilities.tables import row_bound

#: The largest number of cells of all tables together, which bounds the size of an answer.
MAX_CELLS = 2_000_000
#: The largest number of sets of attributes whose combinations of values one answer counts, and the
#: largest product of this number and the number of rows. The product bounds the run time.
MAX_SUBSETS = 100_000
MAX_WORK = 20_000_000_000

Pair = tuple[int, int]

#: Contexts by ``max_dependency`` need counts of all combinations of values for many sets of
#: attributes. Whole tables are counted if they have at most this many cells together, which take 64
#: bytes each with copies. Otherwise the rows are visited anew for every set.
MOST_CELLS = 1 << 21
#: Estimated run times of the sensitivity function δ at one distance, of one row of a set of
#: attributes, and of one cell of its table. The unit is the time of reading the counts of the
#: rarest class of one value and of its other classes. The last number is the fixed time of a table
#: of two attributes, as a number of rows.
DISTANCE, VISIT, CELL, PAIR = 16, 3, 16, 4000


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
    #: True if contexts are derived from noisy tables of pairs of attributes, although the query
    #: requests a private selection of contexts. The noise of all these tables is no larger than the
    #: noise of the fewer tables after a selection, which would take a share of the loss.
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

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs i < j of a target and another attribute, or those of the baseline."""
        every = combinations(range(len(self.attributes)), 2)
        return self.baseline or tuple(one for one in every if {*one} & {*self.targets})

    def most_axes(self, target: int) -> int:
        """A public bound on the axes of a target's metric: the levels of its context together."""
        others = sorted((self.levels[x] for x in self.others(target)), reverse=True)
        return sum(others[: self.size] if self.size else others)

    def work(self, loss: PrivacyLoss) -> Work:
        """The public work of learning the metric at this loss."""
        coordinates = sum(self.levels[target] * self.most_axes(target) for target in self.targets)
        dearer = GAUSSIAN_WORK if loss.unpriced else 1
        tables = together(
            self._counting(self.tables),
            times(work("noisy cells", sum(self.levels) ** 2, self.tables), dearer),
            work("metric", coordinates, len(self.targets)),
        )
        if self.baseline is not None:
            return tables
        return together(tables, self._context_work())

    def _counting(self, tables: int) -> Work:
        """The work of so many tables of pairs: a stored one is read, any other is counted."""
        names = [(self.attributes[i].name, self.attributes[j].name) for i, j in self.pairs]
        read = sorted((rows_read(self.dataset, one, self.rows) for one in names), reverse=True)
        return work("pairs of attributes", PAIR * tables + sum(read[:tables]))

    def _context_work(self) -> Work:
        options, targets = self.options, len(self.targets)
        counted, members = self._counting(len(self.pairs)), 1
        if options.context is Context.MEAN_SU:
            return together(counted, work("noisy cells", self.entropies))
        if options.context is Context.MAX_DEPENDENCY:
            counted, members = NOTHING, self.size
        candidates = comb(len(self.levels) - 1, members)
        cells = sum(self.levels[y] * self._combinations(y, members) for y in self.targets)
        # The run time of each row: the table of entropy sums has one entry for it, every set of
        # attributes visits it once for its entropy, and every candidate of every target visits it
        # once more for the sensitivity function δ.
        visited = self.subsets + (targets * candidates if self.subsets else 0)
        units = self.rows * (DISTANCE + VISIT * visited)
        if cells <= MOST_CELLS * (members + 1):
            units += CELL * cells
        if options.sensitivity is Sensitivity.LOCAL:
            # The run time of the sensitivity function δ, which is computed at every distance up to
            # the public bound on rows. It reads the counts of each value of an attribute at as many
            # distances as this value has records of its rarest class. For all values of a candidate
            # these distances add up to at most the rows divided by the number of classes.
            units += DISTANCE * self.rows * targets
            units += sum(candidates * (self.rows // self.levels[y]) for y in self.targets)
        name = f"contexts by {options.context} {options.sensitivity}"
        return together(counted, work(name, units, targets))

    @property
    def subsets(self) -> int:
        """The contexts and the sets of a context and a target whose tables are counted; 0 unless
        contexts are drawn by dependency."""
        if self.baseline is not None or self.options.context is not Context.MAX_DEPENDENCY:
            return 0
        m, k = len(self.levels), self.size
        # The number of sets of attributes whose combinations of values are counted, for contexts of
        # k attributes. With one target, each possible context is counted twice: alone and together
        # with the target. With several targets, all sets of k and of k + 1 attributes are counted,
        # and targets share them.
        return comb(m, k + 1) + comb(m, k) if len(self.targets) > 1 else 2 * comb(m - 1, k)

    def _combinations(self, target: int, members: int) -> int:
        """The combinations of levels of all sets of so many candidates for a context, together."""
        sums = [1] + [0] * members
        for x in self.others(target):
            sums[1:] = [more + self.levels[x] * less for less, more in pairwise(sums)]
        return sums[members]

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
            # Called only for its error: a loss that is too small for exact noise is refused here,
            # before the charge.
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
        # The noise rate is computed as a fraction, because ``Rate`` raises an error for a loss that
        # is too small for exact noise. The search for the largest loss within a given ρ also tries
        # such losses.
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
        # The requested selection of contexts may be replaced by noisy tables of all pairs of
        # attributes, which need no public lower bound on the rows. The bound is required even then.
        # Otherwise the number of attributes would decide whether a query without this bound is
        # refused.
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
        # The context consists of all attributes besides the target. There is nothing to select, so
        # no loss is spent on a selection.
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
    cells = sum(levels[i] * levels[j] for i, j in plan.pairs)
    cells += sum(levels[target] ** 2 for target in plan.targets)
    if cells > MAX_CELLS:
        raise UnsupportedQuery(
            "the tables of these attributes have too many cells", supported={"cells": MAX_CELLS}
        )
    counts = len(plan.pairs) + plan.subsets
    if plan.subsets:
        # ``MAX_SUBSETS`` limits the number of possible contexts of k attributes if there is one
        # target. If there are several targets, it limits the number of all sets of k + 1
        # attributes.
        several = len(plan.targets) > 1
        m, k = len(levels), plan.size
        if comb(m - (not several), k + several) > MAX_SUBSETS:
            raise UnsupportedQuery(
                "there are too many subsets of this size", supported={"subsets": MAX_SUBSETS}
            )
        if prod(sorted(levels)[-k - 1 :]) >= 1 << 62:
            raise UnsupportedQuery("subsets of these attributes have too many combinations")
    if counts * plan.rows > MAX_WORK:
        raise UnsupportedQuery(
            "the public bound on rows is too large for so many pairs and subsets",
            supported={"rows": MAX_WORK // counts},
        )
