"""``statistic``: one number about a table or a graph."""

from pathlib import Path

from app.queries.parts.kind import Kind
from app.queries.statistic.body import StatisticQuery
from app.queries.statistic.examples import EXAMPLES
from app.queries.statistic.form import StatisticForm
from app.queries.statistic.history import mechanism

KIND = Kind(
    body=StatisticQuery,
    folder=Path(__file__).parent,
    form=StatisticForm(),
    examples=EXAMPLES,
    mechanism=mechanism,
    arguments=("statistic",),
    subject="statistic",
)
