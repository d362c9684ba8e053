"""The coins as in the literature, in Python integers without bounds or blocks."""

from __future__ import annotations

from collections.abc import Iterator


def below(n: int, words: Iterator[int]) -> int:
    if n == 1:
        return 0
    while True:
        draw = next(words) & (2 ** (n - 1).bit_length() - 1)
        if draw < n:
            return draw


def bernoulli_exp(u: int, b: int, words: Iterator[int]) -> bool:
    k = 1
    while below(b, words) < u and below(k, words) == 0:
        k += 1
    return k % 2 == 1


def geometric(a: int, b: int, words: Iterator[int]) -> int:
    while True:
        u = below(b, words)
        if bernoulli_exp(u, b, words):
            break
    v = 0
    while bernoulli_exp(1, 1, words):
        v += 1
    return (u + b * v) // a


def discrete_laplace(a: int, b: int, words: Iterator[int]) -> int:
    while True:
        noise, negative = geometric(a, b, words), next(words) & 1
        if noise or not negative:
            return -noise if negative else noise


def rounded_laplace(a: int, b: int, words: Iterator[int]) -> int:
    noise = geometric(a, b, words)
    return -1 - noise if next(words) & 1 else noise


def half_square(u: int, b: int, words: Iterator[int]) -> bool:
    k = 1
    while (
        below(b, words) < u
        and below(b, words) < u
        and below(2, words) == 0
        and below(k, words) == 0
    ):
        k += 1
    return k % 2 == 1


def discrete_gaussian(steps: int, scale: int, words: Iterator[int]) -> int:
    """``steps`` is 1024·σ, and ``scale`` the scale of the Laplace noise that is proposed."""
    while True:
        noise, negative = geometric(1, scale, words), next(words) & 1
        if negative and not noise:
            continue
        unit = steps * 1024 * scale
        m, f = divmod(abs(noise * 1024**2 * scale - steps**2), unit)
        if (
            all(bernoulli_exp(1, 2, words) for _ in range(m * m))
            and all(bernoulli_exp(f, unit, words) for _ in range(m))
            and half_square(f, unit, words)
        ):
            return -noise if negative else noise
