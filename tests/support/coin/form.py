"""The form of a coin."""

from __future__ import annotations

from app.queries.coin.body import Coin
from app.queries.parts.form import KindForm


class CoinForm(KindForm):
    body = Coin
    order = 70

    def targets(self, variant: str) -> tuple[str, ...]:
        del variant
        return ("wrong_side",)
