"""``coin``: a made-up kind, for the test that adds a folder and touches nothing else."""

from app.queries.coin.body import Coin
from app.queries.coin.drawing import draw
from app.queries.coin.examples import EXAMPLES
from app.queries.parts.form import KindForm
from app.queries.parts.kind import Format, Kind, by_fields

KIND = Kind(
    form=KindForm(Coin, order=70),
    examples=EXAMPLES,
    mechanism=by_fields("side"),
    arguments=("side",),
    draw=draw,
    subject="side",
    formats={"face": Format("text/x-face", lambda answer: draw(answer))},
)
