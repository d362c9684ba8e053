"""Refusals of mechanisms. Every message contains public facts only."""


class UnsupportedQuery(Exception):
    """The query does not fit the dataset, its relation or the range of exact arithmetic.

    ``supported`` names what would fit, in words of the public contract.
    """

    def __init__(self, message: str, *, supported: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.supported = supported or {}


class NoiseOverflow(Exception):
    """A noise value left 64 bits. The probability is below e⁻¹⁰⁰⁰, whatever the scores."""
