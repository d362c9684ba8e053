"""``coin``: a made-up kind, for the test that adds a folder and touches nothing else."""

from pathlib import Path

from app.queries.coin.body import Coin
from app.queries.coin.drawing import draw
from app.queries.coin.examples import EXAMPLES
from app.queries.coin.form import CoinForm
from app.queries.parts.kind import Format, Kind, by_fields

KIND = Kind(
    body=Coin,
    folder=Path(__file__).parent,
    form=CoinForm(),
    examples=EXAMPLES,
    mechanism=by_fields("side"),
    arguments=("side",),
    draw=draw,
    subject="side",
    formats={"face": Format("text/x-face", lambda answer: draw(answer))},
)
