"""A slow, obvious second implementation of docs/reference/randomness.md, written from that page alone.

It must never import the package it checks. Plain integers, SHA-256, single AES blocks, and mpmath's erfc.
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from itertools import count, groupby

import mpmath
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

P = 2**127 - 1


def lp(data: bytes) -> bytes:
    """Section 1: the length as 8 little-endian bytes, followed by the data."""
    return len(data).to_bytes(8, "little") + data


def longest_run_of_marks(text: str) -> int:
    """Section 3: the longest run of characters with a combining class above 0 in the NFKD form."""
    is_mark = (unicodedata.combining(letter) > 0 for letter in unicodedata.normalize("NFKD", text))
    return max((len(list(run)) for marks, run in groupby(is_mark) if marks), default=0)


def canonical_text(text: str) -> bytes:
    """Section 3: UTF-8 of the NFC form; refuses unassigned code points, long runs of marks and, in encode, lone surrogates."""
    if any(unicodedata.category(character) == "Cn" for character in text):
        raise ValueError("an unassigned code point")
    if longest_run_of_marks(text) > 30:
        raise ValueError("too many combining marks")
    return unicodedata.normalize("NFC", text).encode("utf-8")


def key(seed: str, purpose: str) -> bytes:
    """Section 1: the key of a seed and a purpose."""
    seed_bytes = canonical_text(seed)
    if not 1 <= len(seed_bytes) <= 256:
        raise ValueError("a seed is 1 to 256 bytes in UTF-8 after NFC")
    label = b"armslength public randomness v1"
    return hashlib.sha256(lp(label) + lp(seed_bytes) + lp(purpose.encode("ascii"))).digest()


class Stream:
    """Section 2: the words and bits of a key's stream, and its sequential procedures."""

    def __init__(self, seed: str, purpose: str) -> None:
        """Section 2: the stream of key(seed, purpose), its cursor at word(0)."""
        # ECB on one explicit counter block at a time is the bare block function AES-256(key, n).
        self._aes = Cipher(algorithms.AES(key(seed, purpose)), modes.ECB()).encryptor()  # noqa: S305  # single blocks: this is how a counter mode is spelled out
        self._blocks: dict[int, bytes] = {}
        self._cursor = 0

    def block(self, n: int) -> bytes:
        """Section 2: byte block n, which is AES-256(key, n)."""
        if n not in self._blocks:
            self._blocks[n] = self._aes.update(n.to_bytes(16, "big"))
        return self._blocks[n]

    def word(self, i: int) -> int:
        """Section 2: bytes 8i to 8i+7 of the stream, little-endian."""
        half = 8 * (i % 2)
        return int.from_bytes(self.block(i // 2)[half : half + 8], "little")

    def bit(self, i: int) -> int:
        """Section 2: bit i mod 64 of word(floor(i / 64))."""
        return (self.word(i // 64) >> (i % 64)) & 1

    def next_word(self) -> int:
        """Section 2: the next word in sequence, from word(0) on."""
        self._cursor += 1
        return self.word(self._cursor - 1)

    def below(self, B: int) -> int:
        """Section 2: uniform in 0..B-1, with rejection."""
        if not 1 <= B <= 2**63:
            raise ValueError("below(B) needs 1 <= B <= 2^63")
        while True:
            hi, lo = divmod(self.next_word() * B, 2**64)
            if lo >= 2**64 % B:
                return hi

    def field(self) -> int:
        """Section 2: uniform in 0..p-1, with rejection."""
        while True:
            w0 = self.next_word()
            w1 = self.next_word()
            v = w0 + 2**64 * (w1 % 2**63)
            if v != P:
                return v


def item_number(item: int | str) -> int:
    """Section 3: the number x of an int64 or a string item."""
    if isinstance(item, int):
        if not -(2**63) <= item < 2**63:
            raise ValueError("an integer item is an int64")
        return item % 2**64
    data = canonical_text(item)
    return int.from_bytes(hashlib.sha256(lp(b"armslength item v1") + lp(data)).digest()[:15], "big")


class Hash:
    """Section 4: a polynomial hash function; its arguments x are item numbers."""

    def __init__(self, seed: str, purpose: str, independence: int) -> None:
        """Section 4: the coefficients a_0, ..., a_{t-1} in this order from one stream."""
        stream = Stream(seed, purpose)
        self.coefficients = [stream.field() for _ in range(independence)]

    def value(self, x: int) -> int:
        """Section 4: h(x)."""
        return sum(a * pow(x, e, P) for e, a in enumerate(self.coefficients)) % P

    def bucket(self, x: int, B: int) -> int:
        """Section 4: floor(h(x) B / 2^127)."""
        return self.value(x) * B // 2**127

    def sign(self, x: int) -> int:
        """Section 4: +1 if h(x) is even, -1 if it is odd."""
        return 1 if self.value(x) % 2 == 0 else -1


def permutation(seed: str, purpose: str, d: int) -> list[int]:
    """Section 5: the permutation of d."""
    stream, pi = Stream(seed, purpose), list(range(d))
    for i in range(d - 1, 0, -1):
        j = stream.below(i + 1)
        pi[i], pi[j] = pi[j], pi[i]
    return pi


def sample(seed: str, purpose: str, k: int, d: int) -> list[int]:
    """Section 5: the sample of k out of d."""
    stream, pi = Stream(seed, purpose), list(range(d))
    for i in range(k):
        j = i + stream.below(d - i)
        pi[i], pi[j] = pi[j], pi[i]
    return pi[:k]


def normal_table() -> list[int]:
    """Section 6: the normal table, its erfc computed with 200 decimal digits."""
    table: list[int] = []
    with mpmath.workdps(200):
        while True:
            argument = mpmath.mpf(2 * len(table) + 1) / (24 * mpmath.sqrt(2))
            threshold = int(mpmath.floor(2**63 * mpmath.erfc(argument)))
            if threshold == 0:
                return table
            table.append(threshold)


def sparse_normal_table(a: int) -> list[int]:
    """Section 6: the sparse normal table of density a / 2^32."""
    if not 1 <= a <= 2**32:
        raise ValueError("the density needs 1 <= a <= 2^32")
    return [a * t // 2**32 for t in normal_table() if a * t >= 2**32]


def achlioptas_table() -> list[int]:
    """Section 6: the Achlioptas table."""
    return [-(-(2**63) // 3)]


def through_table(table: Sequence[int], word: int) -> int:
    """Section 6: the integer that a word becomes."""
    magnitude = sum(1 for t in table if (word >> 1) >= 2**63 - t)
    return -magnitude if word % 2 else magnitude


def moments(table: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Section 6: the exact second and fourth moments of a symmetric table's law."""
    tails = [*table, 0]  # tails[m] / 2^63 = P(|value| > m), so |value| = m + 1 has the difference
    weights = [(m + 1, Fraction(tails[m] - tails[m + 1], 2**63)) for m in range(len(table))]
    second = sum((p * v**2 for v, p in weights), Fraction(0))
    return second, sum((p * v**4 for v, p in weights), Fraction(0))


def sparse_jl(
    items: Sequence[int | str], k: int, s: int, t: int, seed: str, construction: str
) -> list[list[int]]:
    """Section 7: SparseJL, by rows: "block", "graph", or "balanced" (items 0, ..., d-1 only)."""
    d, B = len(items), k // s
    if construction != "graph" and B * s != k:
        raise ValueError("s must divide k")
    if construction == "balanced" and list(items) != list(range(d)):
        raise ValueError("balanced needs the items 0, ..., d-1")
    matrix = [[0] * d for _ in range(k)]
    taken: list[set[int]] = [set() for _ in items]
    for r in range(s):
        h = Hash(seed, f"SparseJL hash {r}", t)
        pi = permutation(seed, f"SparseJL permutation {r}", d)
        for j, x in enumerate(map(item_number, items)):
            if construction == "block":
                row = r * B + h.bucket(x, B)
            elif construction == "balanced":
                row = r * B + pi[j] % B
            elif construction == "graph":
                m = k - s + r
                v = h.bucket(x, m + 1)
                row = m if v in taken[j] else v
            else:
                raise ValueError("the construction is block, graph or balanced")
            taken[j].add(row)
            matrix[row][j] = h.sign(x)
    return matrix


def padded(d: int) -> int:
    """Section 7: d', the smallest power of two that is at least d."""
    return next(1 << e for e in count() if 1 << e >= d)


def minus_one_to(n: int) -> int:
    """Section 7: (-1)^n, for a bit or a popcount n."""
    return -1 if n % 2 == 1 else 1


def hadamard_jl(d: int, k: int, seed: str) -> list[list[int]]:
    """Section 7: HadamardJL, by rows."""
    signs = Stream(seed, "HadamardJL signs")
    rows = sample(seed, "HadamardJL rows", k, padded(d))
    return [[minus_one_to((f & j).bit_count()) * minus_one_to(signs.bit(j)) for j in range(d)] for f in rows]


def fast_jl(d: int, k: int, a: int, seed: str) -> list[list[int]]:
    """Section 7: FastJL of density a / 2^32, by rows."""
    signs, entries = Stream(seed, "FastJL signs"), Stream(seed, "FastJL entries")
    table, matrix = sparse_normal_table(a), []
    for i in range(k):
        p = [through_table(table, entries.word(f * k + i)) for f in range(padded(d))]
        sums = [sum(p[f] * minus_one_to((f & j).bit_count()) for f in range(padded(d))) for j in range(d)]
        matrix.append([minus_one_to(signs.bit(j)) * sums[j] for j in range(d)])
    return matrix


def gaussian_jl(d: int, k: int, seed: str) -> list[list[int]]:
    """Section 7: GaussianJL, by rows."""
    entries, table = Stream(seed, "GaussianJL entries"), normal_table()
    return [[through_table(table, entries.word(j * k + i)) for j in range(d)] for i in range(k)]


def sign_jl(d: int, k: int, seed: str, construction: str) -> list[list[int]]:
    """Section 7: SignJL, dense or sparse, by rows."""
    if construction == "dense":
        signs = Stream(seed, "SignJL signs")
        return [[minus_one_to(signs.bit(j * k + i)) for j in range(d)] for i in range(k)]
    if construction != "sparse":
        raise ValueError("the construction is dense or sparse")
    entries, table = Stream(seed, "SignJL entries"), achlioptas_table()
    return [[through_table(table, entries.word(j * k + i)) for j in range(d)] for i in range(k)]
