"""The keystream is ChaCha20 from block zero, and no two streams share a key."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from mechanisms.noise import keystream
from mechanisms.noise.keystream import Keystream, SystemRandomness


def test_the_stream_is_that_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 8439, appendix A.1, test vector 1: key and nonce of zeros."""
    monkeypatch.setattr(keystream.os, "urandom", bytes)
    monkeypatch.setattr(keystream, "SHORT", 0)
    words = Keystream().words(8)
    expected = (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert words.astype("<u8").tobytes().hex() == expected


def test_pieces_are_read_as_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keystream.os, "urandom", bytes)
    monkeypatch.setattr(keystream, "SHORT", 0)
    whole = Keystream().words((1 << 18) + 5)
    source = Keystream()
    pieces = [source.words(count) for count in (0, 1, 6, 1 << 17, (1 << 17) - 2)]
    assert (np.concatenate(pieces) == whole).all()
    assert whole.dtype == np.uint64
    assert whole.flags.writeable


def test_every_stream_has_a_key_of_its_own() -> None:
    randomness = SystemRandomness()
    firsts = {int(randomness.stream().words(1)[0]) for _ in range(1000)}
    # Two of 1,000 random words of 64 bits are equal with a probability below 10⁻¹³.
    assert len(firsts) == 1000


def test_a_short_piece_is_the_systems_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte of the system is used once; the first long piece starts the keystream."""
    pieces: list[bytes] = []

    def urandom(count: int) -> bytes:
        pieces.append(bytes((len(pieces) + place) % 251 for place in range(count)))
        return pieces[-1]

    monkeypatch.setattr(keystream.os, "urandom", urandom)
    source = Keystream()
    short = [source.words(count) for count in (3, keystream.SHORT)]
    assert [piece.tobytes() for piece in short] == pieces
    assert all(piece.dtype == np.uint64 and piece.flags.writeable for piece in short)
    long = source.words(keystream.SHORT + 1)
    after = source.words(2)
    assert [len(bytes_) for bytes_ in pieces] == [24, 8 * keystream.SHORT, 32]
    encryptor = Cipher(ChaCha20(pieces[-1], bytes(16)), mode=None).encryptor()
    stream = encryptor.update(bytes(8 * (keystream.SHORT + 3)))
    assert long.tobytes() + after.tobytes() == stream
