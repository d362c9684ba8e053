"""The query kind ``statistic``: one private number about a table or a graph."""

from app.queries.parts.kind import Kind
from app.queries.statistic.body import StatisticQuery, stored_mechanism
from app.queries.statistic.columns import columns
from app.queries.statistic.examples import EXAMPLES
from app.queries.statistic.form import StatisticForm

KIND = Kind(
    form=StatisticForm(StatisticQuery, 60, choice="statistic", advanced=("mechanism",)),
    examples=EXAMPLES,
    columns=columns,
    mechanism=stored_mechanism,
    arguments=("statistic",),
    subject="statistic",
)
