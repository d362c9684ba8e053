"""From the loss that is charged to the loss a mechanism may run at: the one place for both.

A person with up to c records is protected as a group of c changes, and a replacement is a group of
two: a removal and an addition. ``accounting.group_privacy`` proves that a mechanism at ε/k and
δ / (1 + e^(ε/k) + … + e^((k−1)ε/k)) loses at most (ε, δ) on k changes: for a replacement at ε/2 and
δ / (1 + e^(ε/2)). Never the other way: a mechanism of ``replace`` may rely on the number of
records. Shares are rounded down, and the rest of the charge is a step of its own, so the steps
still add up to the charge, to the last unit of ε and of δ.
"""

from dataclasses import dataclass, replace

from accounting.composition import Step
from accounting.group_privacy import group_loss, member_loss
from accounting.privacy_loss import ATTO, PrivacyLoss, format_units
from mechanisms.model.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.model.errors import UnsupportedQuery


def mechanism_loss(dataset: Dataset, charge: PrivacyLoss) -> tuple[PrivacyLoss, tuple[Step, ...]]:
    """The loss for one record's change, and the steps that account for the remainder.

    Raises: UnsupportedQuery when ε, or a δ that was asked for, leaves nothing to share.
    """
    people = dataset.records_per_person
    if people == 1:
        return charge, ()
    share = _shared(charge, people, f"shared by {people} records a person")
    what = (
        f"group privacy: a person has up to {people} records, so the mechanism runs at 1/{people}"
    )
    return share, (Step(what, charge - share),)


def _shared(charge: PrivacyLoss, changes: int, how: str, people: int = 1) -> PrivacyLoss:
    """The loss on one of ``changes``; who asked for a δ gets one, or is told what it takes.

    ``people``: into how many parts the charge of the query was shared before.
    """
    share = member_loss(charge, changes)
    if share.epsilon_nano == 0:
        raise UnsupportedQuery(f"epsilon is too small to be {how}")
    if charge.delta_atto and share.delta_atto == 0:
        # Never a δ of 0: a mechanism that takes one is not private without.
        least = group_loss(PrivacyLoss(share.epsilon_nano, 1), changes).delta_atto
        least = group_loss(PrivacyLoss(charge.epsilon_nano, least), people).delta_atto
        enough = f"at least {format_units(least, 18)}" if least < ATTO else "none at this epsilon"
        raise UnsupportedQuery(f"delta is too small to be {how}", supported={"delta": enough})
    return share


def charge_for(dataset: Dataset, loss: PrivacyLoss) -> PrivacyLoss:
    """The least charge under which a mechanism runs at ``loss``."""
    return group_loss(loss, dataset.records_per_person)


@dataclass(frozen=True)
class Native:
    """How a mechanism of one relation sees a dataset: what it runs on, at which loss."""

    dataset: Dataset
    loss: PrivacyLoss
    #: What accounts for the rest of the charge.
    steps: tuple[Step, ...]


def as_add_remove(dataset: Dataset, charge: PrivacyLoss) -> Native:
    """The terms of a mechanism that is private when a record of a table comes or goes.

    Raises: UnsupportedQuery when the dataset is no table of either relation, or the loss is too
        small for the conversion.
    """
    loss, steps = mechanism_loss(dataset, charge)
    if dataset.neighbouring is NeighbouringRelation.ADD_REMOVE:
        return Native(dataset, loss, steps)
    domain = dataset.domain
    if dataset.neighbouring is not NeighbouringRelation.REPLACE or not isinstance(
        domain, TableDomain
    ):
        raise UnsupportedQuery(
            "this mechanism is for tables",
            supported={"neighbouring": ["add_remove", "replace"]},
        )
    if domain.rows is None:
        raise UnsupportedQuery("rows is not fixed yet")
    half = _shared(loss, 2, "halved", dataset.records_per_person)
    what = (
        "replace: a replacement is a removal and an addition, so the add/remove mechanism runs at "
        "1/2"
    )
    seen = replace(
        dataset,
        neighbouring=NeighbouringRelation.ADD_REMOVE,
        domain=replace(domain, rows=None, max_rows=domain.rows),
    )
    return Native(seen, half, (Step(what, loss - half), *steps))


def charge_for_add_remove(dataset: Dataset, loss: PrivacyLoss) -> PrivacyLoss:
    """The least charge under which ``as_add_remove`` leaves a mechanism this loss."""
    replaced = dataset.neighbouring is NeighbouringRelation.REPLACE
    return charge_for(dataset, group_loss(loss, 2) if replaced else loss)
