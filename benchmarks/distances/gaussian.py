"""Distances with Gaussian noise at the ρ of ε = 1, beside Laplace noise at ε = 1, 2.5 and 3.

An account of ε = 1 and δ_c = 10⁻⁶ holds this ρ. Values are Pearson's correlation with the metric
that the same way learns without noise, the mean over all attributes of three values or more. Both
ways learn all attributes in one query, by defaults.
"""

from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting, rows_of
from benchmarks.data.tables import read_table
from benchmarks.distances.metric_evaluation import Floats, Truth, correlation
from benchmarks.result import Result
from benchmarks.rho import rho_of
from mechanisms.distances.options import Context, Options

TABLES = ("dermatology", "soybean", "mushroom")
WAYS = {
    "Gaussian": rho_of(1),
    **{f"ε = {epsilon}": PrivacyLoss.parse(epsilon) for epsilon in ("1", "2.5", "3")},
}


def run(result: Result, setting: Setting, name: str) -> None:
    truth, options = Truth(read_table(setting.data, name)), Options(Context.MAX_RELEVANCE)
    values = {way: correlations(truth, options, loss, setting.times(60))
              for way, loss in WAYS.items()}  # fmt: skip
    for way, each in values.items():
        result.estimate(f"{name}, {way}", each)
    for way in ("ε = 2.5", "ε = 3"):
        result.estimate(f"{name}, Gaussian − {way}", values["Gaussian"] - values[way])


def correlations(truth: Truth, options: Options, loss: PrivacyLoss, times: int) -> Floats:
    """The mean correlation of all attributes, shape (times,)."""
    exact = {one.attribute.name: one.matrix for one in truth.metric(truth.contexts(options))}
    return np.array([
        np.mean([correlation(one.matrix, exact[one.attribute.name])
                 for one in answer if len(one.points) > 2])
        for answer in truth.learner(options).answers(loss, times)
    ])  # fmt: skip


BENCHES = tuple(
    Bench(f"distances.gaussian.{name}",
          f"What are distances of {name} worth with Gaussian noise?",
          partial(run, name=name), 30.0, ("Laplace noise at more ε",),
          (Bar(f"{name}, Gaussian − ε = 2.5", least=0.0),), rows_of(name))
    for name in TABLES
)  # fmt: skip
