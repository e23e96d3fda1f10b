"""One line of the ledger: the cost of a release."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from math import ceil

from armslength.checks import one_of, short_repr
from armslength.errors import ParameterError
from armslength.privacy.composition import Loss, gaussian_loss, pure_loss
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon, decimal_text, exact_number
from armslength.protocol.neighbors import NORMS, gaussian_sensitivity_squared
from armslength.protocol.protocol import Protocol
from armslength.version import __version__

RELATIONS = ("add_remove", "replace")


@dataclass(frozen=True)
class Entry:
    """What a release costs. All of it is public; nothing is read from data. Numbers are exact decimals as text."""

    population: str  # whose budget it is: a name for the people in the data
    label: str  # which release it is
    unit: str  # the unit of protection, in words
    relation: str
    radius: str  # how far one unit can move the data
    norm: str  # of the radius
    law: str  # "laplace" or "gaussian"
    scale: str  # of the noise, in integer units, as a hexadecimal float
    sensitivity_squared: str  # so that μ² of all Gaussian noise is this/σ²: (R·Δ₂)² in integer units, and margins; "" for Laplace noise
    epsilon: str  # the whole ε of the release
    delta: str
    totals_epsilon: (
        str  # the part of ε under pure DP that totals, and margins, spend; Gaussian noise is (ε − this, δ)-DP
    )
    protocol: str  # its fingerprint
    version: str  # of armslength
    time: str = ""  # in UTC; never before the time of the line before

    @property
    def loss(self) -> Loss:
        """The privacy loss of the release; refuses a line whose numbers are not valid."""
        epsilon, delta = checked_epsilon(self.epsilon), checked_delta(self.delta)
        totals = exact_number("totals_epsilon", self.totals_epsilon)
        if not 0 <= totals < epsilon:
            rule = "totals_epsilon must be from 0 to below epsilon"
            raise ParameterError(f"{rule}, got {short_repr(self.totals_epsilon)}")
        if self.law == "laplace" and delta == 0:
            return pure_loss(epsilon)
        if self.law != "gaussian" or delta == 0:
            rule = "law must be 'laplace' with delta 0 or 'gaussian' with one above"
            raise ParameterError(f"{rule}, got {short_repr(self.law)}")
        squared = self.sensitivity_squared
        if not re.fullmatch("[0-9]{1,80}", squared) or not int(squared):
            raise ParameterError(f"sensitivity_squared must be an integer above 0, got {short_repr(squared)}")
        try:
            sigma = Fraction(float.fromhex(self.scale))
        except (ValueError, OverflowError):
            sigma = Fraction(0)
        if not sigma > 0:
            raise ParameterError(f"scale must be a hexadecimal float above 0, got {short_repr(self.scale)}")
        return gaussian_loss(epsilon, delta, int(squared), sigma, totals)


COLUMNS = tuple(field.name for field in fields(Entry))


def ledger_entry(protocol: Protocol, population: str, labels: Sequence[str]) -> Entry:
    """The entry of a release of rows with these labels."""
    squared, pure = "", protocol.totals_epsilon + protocol.margins_epsilon
    if protocol.noise == "gaussian":
        neighbors, site = protocol.neighbors, protocol.noise_site
        exact = Fraction(gaussian_sensitivity_squared(protocol.transform, neighbors, site))
        if protocol.margin_delta and protocol.margin_law is not None and protocol.margin_sensitivity:
            # Margins times σ/σ_m have noise σ, too: with them, the sketches are one Gaussian mechanism. Rounded up.
            ratio = Fraction(protocol.law.scale) / Fraction(protocol.margin_law.scale)
            exact, pure = exact + protocol.margin_sensitivity * ratio**2, protocol.totals_epsilon
        squared = str(ceil(exact))
    return Entry(
        population=population,
        label=release_label(labels),
        unit=protocol.unit,
        relation=protocol.relation,
        radius=decimal_text(protocol.radius),
        norm=protocol.norm,
        law=protocol.noise,
        scale=protocol.law.scale.hex(),
        sensitivity_squared=squared,
        epsilon=decimal_text(protocol.epsilon),
        delta=decimal_text(protocol.released_delta),
        totals_epsilon=decimal_text(pure),
        protocol=protocol.fingerprint,
        version=__version__,
    )


def release_label(labels: Sequence[str]) -> str:
    """One name for a release of several rows, from their labels alone."""
    joined = ", ".join(labels)
    if len(joined) <= 200:
        return joined
    digest = hashlib.sha256(joined.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{len(labels)} rows, {labels[0][:80]} … ({digest})"


def check_entry(entry: Entry) -> None:
    """Refuses an entry with other than text, with an unknown word, or without a known loss."""
    if not all(isinstance(value, str) for value in astuple(entry)):
        raise ParameterError("an entry must have text in every field, got something else")
    check_spelling(entry.population)
    entry.loss  # noqa: B018  # raises
    one_of("relation", entry.relation, RELATIONS)
    one_of("norm", entry.norm, NORMS)


def check_spelling(population: str) -> None:
    """Refuses a population in another spelling: two names that look alike must not be two budgets."""
    if population != one_spelling(population).strip():
        rule = "population must have no blanks at its ends and composed characters (NFC)"
        raise ParameterError(f"{rule}, got another spelling")


def one_spelling(label: str) -> str:
    """The label in composed characters (NFC), as a ledger stores it."""
    return unicodedata.normalize("NFC", label)
