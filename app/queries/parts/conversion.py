"""Converts the charge (ε, δ) of a query into the smaller loss at which its mechanism may run.

A mechanism for ``replace`` must never run under add/remove: it may rely on the number of records.
A person with up to c records is protected as a group of c changes. A replacement is a group of two:
a removal and an addition. ``accounting.group_privacy`` shows that a mechanism which runs at ε/k and
δ / (1 + e^(ε/k) + … + e^((k−1)ε/k)) loses at most (ε, δ) on k changes. For a replacement these are
ε/2 and δ / (1 + e^(ε/2)). Shares round down, and a separate step holds the rest of the charge, so
the steps add up exactly to the charge, to the last unit of ε and of δ.
"""

from dataclasses import dataclass, replace

from accounting.composition import NO_RELEASE, Step
from accounting.group_privacy import group_loss, member_loss
from accounting.privacy_loss import ATTO, PrivacyLoss, format_units
from mechanisms.model.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.model.errors import UnsupportedQuery


def mechanism_loss(dataset: Dataset, charge: PrivacyLoss) -> tuple[PrivacyLoss, tuple[Step, ...]]:
    """Returns the loss on a change of one record, and the steps that hold the rest of the charge.

    Raises: UnsupportedQuery if the share of ε, or of a δ above zero, would round down to zero.
    """
    people = dataset.records_per_person
    if people == 1:
        return charge, ()
    if charge.unpriced:
        return _shared_rho(charge, people, f"a person has up to {people} records")
    share = _shared(charge, people, f"shared by {people} records a person")
    what = (
        f"group privacy: a person has up to {people} records, so the mechanism runs at 1/{people}"
    )
    return share, (Step(what, charge - share, bound=NO_RELEASE),)


def _shared_rho(
    charge: PrivacyLoss, changes: int, why: str
) -> tuple[PrivacyLoss, tuple[Step, ...]]:
    """The share of a charge in ρ alone, which is divided by ``changes``², and what is left over."""
    share = replace(charge, rho_femto=charge.rho_femto // changes**2)
    if not share.rho_femto:
        raise UnsupportedQuery(f"rho is too small to be shared by {changes} changes of a record")
    rest = charge.rho_femto - share.rho_femto * changes**2
    what = f"group privacy: {why}; what a square of them leaves over"
    step = Step(what, PrivacyLoss(0, 0, rest, 1))
    return share, (step,) if rest else ()


def _shared(charge: PrivacyLoss, changes: int, how: str, people: int = 1) -> PrivacyLoss:
    """Returns the loss on one of ``changes`` changes. A charge with δ > 0 gives a share with δ > 0.

    ``people`` is the number of parts into which an earlier step divided the charge of the query.
    Raises: UnsupportedQuery, with the least δ that suffices, if a share would round to zero.
    """
    share = member_loss(charge, changes)
    if share.epsilon_nano == 0:
        raise UnsupportedQuery(f"epsilon is too small to be {how}")
    if charge.delta_atto and share.delta_atto == 0:
        # Danger: a mechanism that uses δ is not private with δ = 0. So a δ whose share rounds to 0
        # is refused, and the refusal states the least δ that suffices.
        least = group_loss(PrivacyLoss(share.epsilon_nano, 1), changes).delta_atto
        least = group_loss(PrivacyLoss(charge.epsilon_nano, least), people).delta_atto
        enough = f"at least {format_units(least, 18)}" if least < ATTO else "none at this epsilon"
        raise UnsupportedQuery(f"delta is too small to be {how}", supported={"delta": enough})
    return share


def charge_for(dataset: Dataset, loss: PrivacyLoss) -> PrivacyLoss:
    """Returns the least charge that lets a mechanism run at ``loss`` on this dataset."""
    return group_loss(loss, dataset.records_per_person)


@dataclass(frozen=True)
class Native:
    """The dataset and the loss as a mechanism reads them, under its own neighbouring relation."""

    dataset: Dataset
    loss: PrivacyLoss
    #: One person may cause several changes of records, so the mechanism runs at a part of the
    #: charge. These steps of the composition state the rest, so that all steps add up to the
    #: charge.
    steps: tuple[Step, ...]
    #: The most changes of single records that one person can cause, as the mechanism's neighbouring
    #: relation counts them.
    members: int


def as_add_remove(dataset: Dataset, charge: PrivacyLoss) -> Native:
    """Returns the dataset and the loss for a mechanism that is private under add/remove.

    Raises: UnsupportedQuery if the dataset is not a table under ``add_remove`` or ``replace``, or
        if the charge is too small for the conversion.
    """
    people = dataset.records_per_person
    if dataset.neighbouring is NeighbouringRelation.ADD_REMOVE:
        return Native(dataset, *mechanism_loss(dataset, charge), people)
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
    seen = replace(
        dataset,
        neighbouring=NeighbouringRelation.ADD_REMOVE,
        domain=replace(domain, rows=None, max_rows=domain.rows),
    )
    if charge.unpriced:
        why = f"a person has up to {people} records, each of which is removed and added"
        return Native(seen, *_shared_rho(charge, 2 * people, why), 2 * people)
    loss, steps = mechanism_loss(dataset, charge)
    half = _shared(loss, 2, "halved", people)
    what = (
        "replace: a replacement is a removal and an addition, so the add/remove mechanism runs at "
        "1/2"
    )
    return Native(seen, half, (Step(what, loss - half, bound=NO_RELEASE), *steps), 2 * people)


def charge_for_add_remove(dataset: Dataset, loss: PrivacyLoss) -> PrivacyLoss:
    """Returns the least charge that ``as_add_remove`` converts into this loss of a mechanism."""
    replaced = dataset.neighbouring is NeighbouringRelation.REPLACE
    return charge_for(dataset, group_loss(loss, 2) if replaced else loss)
