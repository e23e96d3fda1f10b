"""The noise by its definition, in 60-digit decimals: slow, obvious, and without any inverse function."""

import mpmath


def is_magnitude(law: str, scale: float, numerator: int, bits: int, magnitude: int) -> bool:
    """Whether floor(scale·Q(W) + shift) is this magnitude at W = numerator·2^−bits, by the tail of the law.

    Laplace: P(magnitude ≥ n) = 2α^n/(1+α), α = e^(−1/b). Normal: P(magnitude ≥ n) = erfc((n − ½)/(σ√2)).
    """
    with mpmath.workdps(60):
        w = mpmath.ldexp(numerator, -bits)
        return bool(tail(law, scale, magnitude + 1) < w <= tail(law, scale, magnitude))


def tail(law: str, scale: float, n: int) -> mpmath.mpf:
    """P(magnitude ≥ n) at the current precision."""
    if n <= 0:
        return mpmath.mpf(1)
    if law == "laplace":
        b = mpmath.mpf(scale)
        return 2 * mpmath.exp(-n / b) / (1 + mpmath.exp(-1 / b))
    return mpmath.erfc((mpmath.mpf(n) - mpmath.mpf("0.5")) / (mpmath.mpf(scale) * mpmath.sqrt(2)))


def tail_bits(law: str, scale: float, n: int, bits: int) -> int:
    """⌊P(magnitude ≥ n)·2^bits⌋: the W at which the answer changes from n to n − 1."""
    with mpmath.workdps(200):
        return int(mpmath.floor(mpmath.ldexp(tail(law, scale, n), bits)))


def exact_moments(law: str, scale: float) -> tuple[float, float]:
    """E[N²] and E[N⁴] by summing the tails, in 60-digit decimals."""
    with mpmath.workdps(60):
        second = fourth = mpmath.mpf(0)
        n = 1
        while True:
            probability = tail(law, scale, n)
            second += (2 * n - 1) * probability
            fourth += (n**4 - (n - 1) ** 4) * probability
            if (
                n > 4 * scale
                and (n**4) * probability < fourth * mpmath.mpf(10) ** -30 + mpmath.mpf(10) ** -3000
            ):
                return float(second), float(fourth)
            n += 1
