"""Even cumulants of symmetric noise: what variances are made of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cumulants:
    """κ₂ and κ₄ of a symmetric law; they add for independent noises."""

    k2: float = 0.0
    k4: float = 0.0

    def __add__(self, other: "Cumulants") -> "Cumulants":
        return Cumulants(self.k2 + other.k2, self.k4 + other.k4)

    def times(self, coefficient: float) -> "Cumulants":
        """The cumulants of coefficient·noise."""
        square = coefficient * coefficient
        return Cumulants(self.k2 * square, self.k4 * square * square)


def uniform_cumulants(bits: int) -> Cumulants:
    """Of a uniform variable on 2^bits neighboring integers: what dropping the low bits adds.

    Dropping bits of a law whose standard deviation is at least four times 2^bits adds an error that is independent of
    it to many digits.
    """
    return Cumulants((4**bits - 1) / 12, -(16**bits - 1) / 120)
