"""What plans by size and by shape have in common: their protocol, their warning, and words."""

import os
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from armslength.errors import NotResolvableError, plural
from armslength.planner.predictions import Option
from armslength.planner.situation import Situation
from armslength.plots import PlanCurves, plan_figure, write_figure
from armslength.privacy.exact_numbers import decimal_text, weakness
from armslength.protocol.protocol import Protocol
from armslength.results import Result, table_lines
from armslength.threads import cached_attribute

WIDTH = 100
_EPSILONS = 25  # points of the plot, from a tenth to ten times the plan's own


class AnyPlan(Result):
    """A recommended way to release, or why there is none."""

    situation: Situation
    recommended: Option
    seed: str

    @property
    def refusal(self) -> str | None:
        """Why nothing can be resolved, and what would be enough; None if something can."""
        raise NotImplementedError

    @property
    def resolvable(self) -> bool:
        """Whether something can be resolved."""
        return self.refusal is None

    @property
    def weakness(self) -> str:
        """Why the promise of what is recommended would be weak; empty if it is not."""
        situation = self.situation
        return weakness(situation.epsilon, situation.delta_of(self.recommended.noise), situation.people)

    @cached_attribute
    def protocol(self) -> Protocol:
        """What is recommended, as a protocol. Raises `NotResolvableError` if nothing can be resolved."""
        if self.refusal is not None:
            raise NotResolvableError(self.refusal)
        return self.recommended.protocol(self.situation, self.seed, **self._chosen_fields())

    def _chosen_fields(self) -> dict[str, Any]:
        """The arguments of the protocol that the plan chooses beside transform and noise."""
        return {}

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """What is predicted against sketch size and against ε, as a Matplotlib figure; or written to an .svg or .png file."""
        figure = plan_figure(self._curves())
        return figure if path is None else write_figure(figure, path)

    def _curves(self) -> PlanCurves:
        """The contents of the figure."""
        raise NotImplementedError

    def _at_other_epsilons(self) -> list[Any]:
        """The situation at each ε of the figure."""
        epsilons = (self.situation.epsilon * 10 ** (2 * i / (_EPSILONS - 1) - 1) for i in range(_EPSILONS))
        return [replace(self.situation, epsilon=Fraction(f"{epsilon:.6g}")) for epsilon in epsilons]

    def _figure_title(self) -> str:
        situation, d = self.situation, self.situation.input_dim
        delta = f", δ={float(situation.delta):g}" if situation.delta else ""
        source = "open vocabulary" if d is None else f"{d:,} coordinates"
        return f"{source}, ε={decimal_text(situation.epsilon)}{delta}"

    def _last_lines(self) -> list[str]:
        """The end of the summary: a warning of a weak promise, and the seed."""
        warning = textwrap.wrap(f"WARNING: {self.weakness}", WIDTH) if self.weakness else []
        return [*warning, *([f"  public seed: {self.seed}"] if self.resolvable else [])]


def explained(count: int) -> str:
    """What a plan with listed items gives."""
    return f"differences of {plural(count, 'listed item')} get intervals that hold together"


def share_table(title: str, name: str, cells: Iterable[tuple[str, Fraction, str, bool]]) -> list[str]:
    """A table with a column for each share of ε, of (row, share, text, whether it is recommended)."""
    rows = dict[str, dict[str, Any]]()
    for row, share, text, is_recommended in cells:
        column = f"{100 * float(share):g} %"
        rows.setdefault(row, {name: row})[column] = f"{'*' * is_recommended}{text}"
    return [*textwrap.wrap(title, WIDTH), *table_lines(list(rows.values()), ())]


def number_text(number: float) -> str:
    """The number to four digits, without an exponent if it is easy to read."""
    return f"{number:,.0f}" if 1000 <= number < 1e9 else f"{number:,.4g}"


def error_text(share: float) -> str:
    """A relative error in percent, or as a multiple if it is large."""
    return f"{100 * share:,.3g}%" if share < 10 else f"{number_text(share)}x"
