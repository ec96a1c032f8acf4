"""The laws of the user's own terms, tried at the points of a certificate.

The library's terms are tested; what a user wrote is believed as far as it is not contradicted. An inequality that is
missed by more than rounding proves that the term breaks its laws: no bound of the problem is valid then. One that is
missed by so little that it may be rounding is charged to the bound.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...base.declaring import in_library
from ...form import DualPoint, Form
from ...terms import Array
from .laws import Trial, lengths
from .points import BlockRows, claims, numbers, other_points, own_points, rows_of, shaped

MANY = 256  # rows on which more is tried than their own residual
FEW = 16  # rows on which claims are tried that the certificate does not need
BEYOND = 1e-6  # of the parts of an inequality: what is missed by less may be rounding, or a solver's tolerance
NOISY = 30.0  # times the noise that is measured: what is missed by less may be rounding
LEAST = 64 * 2.0**-52  # of 1, of values a unit away and of the largest numbers of a block: rounding that need not show
VAGUE = 1e-9  # the same where no bound is at stake
NEARBY, PULLED = 1e-3, 2.0**-6  # how far apart the points are at which noise is measured


class SpotChecks:
    """Spot checks of the user's terms in a form. ``contradiction`` is the first law that was found broken, in words;
    ``below`` and ``above`` are what small disagreements cost either bound at the last points, and ``size`` is that of
    the numbers that are compared there."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.edges = [k for k, edge in enumerate(form.edges) if edge.penalty.is_users()]
        self.samples = [k for k, block in enumerate(form.samples) if block.loss.is_users()]
        self.contradiction = ""
        self.below = self.above = self.size = 0.0
        self._seen: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return bool(self.edges or self.samples)

    @property
    def assumed(self) -> str:
        """The assumption beside arithmetic that bounds of the form rest on; empty where all terms are the library's."""
        penalties = [self.form.edges[k].penalty for k in self.edges]
        terms = [*[self.form.samples[k].loss for k in self.samples], *penalties]
        names = ", ".join(dict.fromkeys([each.called() for each in terms]))
        more = ", ".join(dict.fromkeys([p.called() for p in penalties if not in_library(type(p).gauge_at_zero)]))
        names += f", and in proofs of clusters gauge_at_zero of {more}," if more else ""
        said = f"value and conjugate of {names} are taken at their word, but for what was tried of them"
        return said if names else ""

    def __call__(self, w: Array, point: DualPoint) -> None:
        """Try the laws at a primal and a dual point."""
        if not self or self.contradiction or self._seen == (id(w), id(point)):
            return
        self._w, self._point = w, point  # held, so that no other object gets their numbers
        self._seen = id(w), id(point)
        self.below = self.above = self.size = 0.0
        with np.errstate(all="ignore"):
            for rows in self._rows(w, point):
                self._try(rows)

    def doubt(self, w: Array, point: DualPoint, everywhere: bool = True) -> str:
        """The error of a user's term that misleads solves, though no bound; empty where none is found. A few rows of
        each block are tried, or many."""
        with np.errstate(all="ignore"):
            for rows in self._rows(w, point):
                few = rows.take(_some(rows, lengths(rows.x), MANY if everywhere else FEW))
                for trial in claims(few) if len(few.place) else ():
                    if said := _missed(few, trial, VAGUE):
                        return said
        return ""

    def begin(self) -> None:
        """Try at 0 whether values and conjugates are numbers at all, and arrays of the right shapes.

        Raises
        ------
        TermError
            Where one has another shape.
        """
        with np.errstate(all="ignore"):
            for rows in self._rows(np.zeros(self.form.shape), self.form.nothing()) if self else ():
                shaped(rows.take(np.arange(min(len(rows.place), FEW))))
                for trial in numbers(rows) if len(rows.place) else ():
                    self.contradiction = self.contradiction or _missed(rows, trial, 0.0)

    def _rows(self, w: Array, point: DualPoint) -> Iterable[BlockRows]:
        for k in self.samples:
            yield rows_of(self.form, self.form.samples[k], w, point.prices[k])
        for k in self.edges:
            yield rows_of(self.form, self.form.edges[k], w, point.flows[k])

    def _try(self, rows: BlockRows) -> None:
        if not len(rows.place):
            return
        everywhere = np.arange(len(rows.place))
        charges = {side: np.zeros(len(everywhere)) for side in ("below", "above")}
        residual = np.zeros(len(everywhere))
        least = LEAST * max(1.0, float(_known(rows.of.value(rows.x + rows.along())).max()))
        for trial in own_points(rows):
            size = _known(trial.size)
            least = max(least, LEAST * float(size.max()))
            self._take(rows, trial, charges, everywhere, least)
            residual = np.fmax(residual, trial.excess)
            self.size += float(rows.weight @ size)
        chosen = _some(rows, residual)
        few = rows.take(chosen)
        for trial in other_points(few):
            if self.contradiction:
                break
            self._take(few, trial, charges, chosen, least)
        self.below += float(rows.weight @ charges["below"])
        self.above += float(rows.weight @ charges["above"])

    def _take(self, rows: BlockRows, trial: Trial, charges: dict[str, Array], chosen: Array, least: float) -> None:
        self.contradiction = self.contradiction or _missed(rows, trial, least)
        if trial.side and (trial.excess > 0.0).any():
            charge = charges[trial.side]
            charge[chosen] = np.fmax(charge[chosen], np.where(rows.near(trial.x), trial.excess, 0.0))


def _some(rows: BlockRows, residual: Array, many: int = MANY) -> Array:
    """Some rows: those that miss the most, and others evenly spread."""
    m = len(rows.place)
    if m <= many:
        return np.arange(m)
    worst = np.argsort(-residual, kind="stable")[: many // 2]
    return np.union1d(worst, np.linspace(0, m - 1, many // 2).astype(int))


def _missed(rows: BlockRows, trial: Trial, least: float) -> str:
    """The error of the term, where a law is missed by more than rounding, and ``least``; else empty."""
    size = _known(trial.size)
    excess = np.where(np.isnan(trial.excess), -np.inf, trial.excess)
    bad = np.flatnonzero(excess > BEYOND * size)
    if not len(bad):
        return ""
    bad = bad[np.argsort(-excess[bad] / (size[bad] + 1e-300), kind="stable")][:8]
    noise = np.fmax(_noise(rows.take(bad), trial.x[bad], trial.b[bad]), least)
    beyond = excess[bad] > NOISY * noise
    if not beyond.any():
        return ""
    row = int(bad[np.argmax(beyond)])
    said = ", ".join(f"{name} = {_shown(value[row])}" for name, value in trial.said.items())
    term, checker = rows.of.term, rows.of.checker
    name, kind = term.called(), checker.removeprefix("check_")
    made = name != type(term).__name__  # by a function
    trying = f"({kind}) of this {kind}" if made else f"({name}(...))"
    blamed = f": {term.blamed()}" if term.blamed() else ", and mend the method that is wrong"
    return (
        f"{name} breaks the law {trial.law} {rows.at(row)}, where {said}; print "
        f"graphreg.testing.{checker}{trying}, which tries every law{blamed}"
    )


def _noise(rows: BlockRows, x: Array, b: Array) -> Array:
    """The rounding of values near x and of conjugates near b, as their fourth differences show it."""
    along = NEARBY * rows.extent * rows.along()
    values = np.stack([rows.of.value(x + k * along) for k in range(12)])
    conjugates = np.stack([rows.of.conjugate(b * (1.0 - PULLED * k)) for k in range(12)])
    of_values, of_conjugates = (_known(np.abs(np.diff(each, 4, axis=0))).max(axis=0) for each in (values, conjugates))
    return of_values + of_conjugates


def _known(numbers: Array) -> Array:
    return np.where(np.isfinite(numbers), numbers, 0.0)


def _shown(value: np.ndarray) -> str:
    value = np.asarray(value)
    return f"{float(value):.10g}" if value.ndim == 0 else np.array2string(value, precision=6, threshold=6)
