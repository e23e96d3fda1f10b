"""One line of the ledger: the cost of a release."""

import hashlib
import unicodedata
from dataclasses import astuple, dataclass, fields
from fractions import Fraction

from armslength.checks import one_of, shown
from armslength.errors import ParameterError
from armslength.privacy.composition import Loss, gaussian_loss, pure_loss
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon, exact_number, written
from armslength.protocol.neighbors import gaussian_sensitivity_squared
from armslength.protocol.protocol import Protocol
from armslength.version import __version__

RELATIONS = ("add_remove", "replace")
NORMS = ("l1", "l2")
_LARGEST_SENSITIVITY_DIGITS = 80


@dataclass(frozen=True)
class Entry:
    """What a release costs. All of it is public; nothing is read from data.

    Attributes:
        population: Whose budget it is: a name for the people in the data.
        label: Which release it is.
        unit: The unit of protection, in words.
        relation: "add_remove" or "replace".
        radius: How far one unit can move the data, as an exact decimal.
        norm: "l1" or "l2": the norm of the radius.
        law: "laplace" or "gaussian".
        scale: The scale of the noise in integer units, as a hexadecimal float.
        sensitivity_squared: (R·Δ₂)² of Gaussian noise, an exact integer in integer units, so that μ² = sensitivity_squared/σ²; ""
            for Laplace noise.
        epsilon: The whole ε of the release, as an exact decimal.
        delta: δ as an exact decimal.
        totals_epsilon: The part of ε that totals spend, under pure DP; "0" if there are none. Gaussian noise is (ε − this, δ)-DP.
        protocol: The fingerprint of the protocol.
        version: The version of armslength.
        time: When, in UTC; never before the time of the line before.
    """

    population: str
    label: str
    unit: str
    relation: str
    radius: str
    norm: str
    law: str
    scale: str
    sensitivity_squared: str
    epsilon: str
    delta: str
    totals_epsilon: str
    protocol: str
    version: str
    time: str = ""

    @property
    def loss(self) -> Loss:
        """The privacy loss of the release; refuses a line whose numbers are not valid."""
        epsilon, delta = checked_epsilon(self.epsilon), checked_delta(self.delta)
        totals = exact_number("totals_epsilon", self.totals_epsilon)
        if not 0 <= totals < epsilon:
            raise ParameterError(
                f"totals_epsilon must be from 0 to below epsilon, got {shown(self.totals_epsilon)}"
            )
        if self.law == "laplace" and delta == 0:
            return pure_loss(epsilon)
        if self.law != "gaussian" or delta == 0:
            raise ParameterError(
                f"law must be 'laplace' with delta 0 or 'gaussian' with one above, got {shown(self.law)}"
            )
        return gaussian_loss(epsilon, delta, self._checked_sensitivity(), self._checked_sigma(), totals)

    def _checked_sensitivity(self) -> int:
        text = self.sensitivity_squared
        if not (
            text.isascii() and text.isdecimal() and len(text) <= _LARGEST_SENSITIVITY_DIGITS and int(text)
        ):
            raise ParameterError(f"sensitivity_squared must be an integer above 0, got {shown(text)}")
        return int(text)

    def _checked_sigma(self) -> Fraction:
        try:
            sigma = Fraction(float.fromhex(self.scale))
        except (ValueError, OverflowError):
            sigma = Fraction(0)
        if not sigma > 0:
            raise ParameterError(f"scale must be a hexadecimal float above 0, got {shown(self.scale)}")
        return sigma


COLUMNS = tuple(field.name for field in fields(Entry))


def ledger_entry(protocol: Protocol, population: str, labels: list[str]) -> Entry:
    """The entry of a release of rows with these labels."""
    document = protocol.document()
    is_laplace = protocol.noise == "laplace"
    sensitivity_squared = (
        ""
        if is_laplace
        else str(gaussian_sensitivity_squared(protocol.transform, protocol.neighbors, protocol.noise_site))
    )
    return Entry(
        population=population,
        label=release_label(labels),
        unit=protocol.unit,
        relation=protocol.relation,
        radius=document["radius"],
        norm=protocol.norm,
        law=protocol.noise,
        scale=document["derived"]["scale"],
        sensitivity_squared=sensitivity_squared,
        epsilon=document["epsilon"],
        delta="0" if is_laplace else document["delta"],
        totals_epsilon=written(protocol.totals_epsilon),
        protocol=protocol.fingerprint,
        version=__version__,
    )


def release_label(labels: list[str]) -> str:
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
    one_of("relation", entry.relation, RELATIONS)
    one_of("norm", entry.norm, NORMS)
    entry.loss  # noqa: B018  # raises


def check_spelling(population: str) -> None:
    """Refuses a population in another spelling: two names that look alike must not be two budgets."""
    if population != one_spelling(population).strip():
        raise ParameterError(
            "population must have no blanks at its ends and composed characters (NFC), got another spelling"
        )


def one_spelling(label: str) -> str:
    """The label in composed characters (NFC), as a ledger stores it."""
    return unicodedata.normalize("NFC", label)
