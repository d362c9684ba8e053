"""The randomness of production: a ChaCha20 keystream under a secret key.

Every stream has a fresh 32-byte key from the operating system. So streams share no state between
threads, forks, replicas or machines restored from one snapshot. A key serves one stream only, hence
the nonce of zeros. There is no seed: no draw can be repeated. Short draws use the system's own
words without a key.
"""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from mechanisms.model.randomness import Words

_WORD = 8
#: Up to this many random words, the generator of the operating system is faster than setting up a
#: cipher, and as secure.
SHORT = 128
#: 1 MiB of zeros, whose encryption is the keystream. Longer draws encrypt them repeatedly.
_ZEROS = memoryview(bytes(_WORD << 17))


class Keystream:
    """One stream of words; do not share it between threads. Implements ``WordSource``."""

    __slots__ = ("_encryptor",)

    def __init__(self) -> None:
        self._encryptor: CipherContext | None = None

    def words(self, count: int) -> Words:
        words = np.empty(count, dtype=np.uint64)
        into = words.data.cast("B")
        if self._encryptor is None:
            if count <= SHORT:
                into[:] = os.urandom(_WORD * count)
                return words
            self._encryptor = Cipher(ChaCha20(os.urandom(32), bytes(16)), mode=None).encryptor()
        for start in range(0, len(into), len(_ZEROS)):
            part = into[start : start + len(_ZEROS)]
            self._encryptor.update_into(_ZEROS[: len(part)], part)
        return words


class SystemRandomness:
    """A fresh keystream for every draw and thread. Implements ``Randomness``."""

    def stream(self) -> Keystream:
        return Keystream()
