"""When a quote says that noise which follows the records pays, against the scales themselves."""

from __future__ import annotations

import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset, NeighbouringRelation, PrefixDomain
from mechanisms.model.executor import Inline
from mechanisms.model.records import PrefixRecords
from mechanisms.statistics.graphs import Edges
from mechanisms.statistics.prefix_sum import SmallestSum
from mechanisms.statistics.release.smooth import (
    LargestLocalSensitivities,
    SmoothNoise,
    SmoothSensitivity,
)
from tests.evidence.certification.graphs import dataset_of
from tests.support.randomness import SeededRandomness

LOSS = PrivacyLoss(10**9, 10**12)
MECHANISMS = [SmoothSensitivity(), LargestLocalSensitivities()]
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)


def prefix(count: int) -> Dataset:
    """Values that grow fast, so that noise near the small ones is as small as β admits."""
    values = tuple(float(2**place) for place in range(count))
    return Dataset("list", NeighbouringRelation.PREFIX, PrefixDomain(values))


@every_mechanism
def test_noise_is_less_than_laplace_noise_only_where_the_quote_says(mechanism: SmoothNoise) -> None:
    dataset, statistic = prefix(40), SmallestSum()
    ((part, spent, plan),) = mechanism.plans(statistic, dataset, LOSS)
    beyond = mechanism.accuracy(statistic, dataset, LOSS)["pays_beyond"]
    less = []
    for cutoff in range(41):
        context = QueryContext(PrefixRecords(cutoff), dataset, LOSS, SeededRandomness(1), Inline())
        rate = mechanism.rate(part.measure(context, plan), plan, spent).exponent()
        # The local sensitivity is largest at the cut-offs 39 and 40. So any other cut-off is 39 −
        # ``cutoff`` changes away from the largest.
        less.append((39 - cutoff, rate * plan.cap > 1))
    assert beyond == 14
    # In general this distance from the largest local sensitivity is necessary for less noise. Here
    # it is also enough, because each change lowers the local sensitivity by a factor above e^β.
    assert [pays for _, pays in less] == [far >= beyond for far, _ in less]


@every_mechanism
def test_no_noise_that_follows_the_records_pays_where_none_are_far_enough(
    mechanism: SmoothNoise,
) -> None:
    assert mechanism.accuracy(SmallestSum(), prefix(13), LOSS)["pays_beyond"] is None
    assert mechanism.accuracy(SmallestSum(), prefix(14), LOSS)["pays_beyond"] == 14
    quoted = mechanism.accuracy(Edges(), dataset_of(1000, 999), LOSS)
    assert quoted["pays_beyond"] is None
    assert "never more" in str(quoted["explanation"])
    tiny = PrivacyLoss(1000, 10**12)
    assert mechanism.accuracy(SmallestSum(), prefix(40), tiny)["pays_beyond"] is None
