"""Whoever sets the service up at a terminal sees how far the kernels are."""

from __future__ import annotations

import re
from io import StringIO

import pytest

from app.service import warm


def test_progress_ends_with_the_last_example(monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = warm.stored_types()[-1:]
    monkeypatch.setattr(warm, "stored_types", lambda: prefix)
    out = StringIO()
    warm.show_progress(out)
    shares = [int(share) for share in re.findall(r"(\d+) %", out.getvalue())]
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 100
