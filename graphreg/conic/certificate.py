"""What is proved of the optimal value of a problem of CVXPY, and by what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.display import Html, Shown, facts, sentence, title
from ..terms import Array
from .programme import Programme
from .verify import Reached

if TYPE_CHECKING:
    from .prove import ProvedProblem

PROVED = "of the problem as CVXPY stores it for a conic solver"


@dataclass(frozen=True, repr=False)
class ConicCertificate(Shown):
    """``lower <= optimal value <= upper``, proved, of a problem of CVXPY: ``graphreg.certify``.

    Attributes
    ----------
    lower, upper : float
        Bounds of the value that the user's problem has, also where it is maximised. Both +inf where no point is
        feasible, both -inf where the objective falls without end (turned round where it is maximised).
    status : str
        ``"certified"``: both bounds are finite. ``"infeasible"``, ``"unbounded"``: that is proved.
        ``"infeasible as stored"``: some equalities contradict each other exactly, if only by rounding.
        ``"unbounded as stored"``: so do linear terms, in a direction in which nothing else changes.
        ``"one side only"``: one bound is finite. ``"refused"``: nothing is proved.
    message : str
        What stands in the way, where something does, in the user's constraints and variables, and what to do.
    point : dict
        The values of the user's variables at which ``upper`` is reached (``lower`` where the problem is maximised), by
        name, rounded to doubles; empty where no feasible point is proved.
    reported : float or None
        The objective at the values of the variables: what the solver said, or where values stood in all of them and no
        solver was named, what it is at those, with the parameters as they are.
    given : str
        How far these values miss the constraints, and whether ``problem.value`` is of other ones; empty where the
        answer was made here.
    scope : str
        What the statement is about: ``"of your formula"``, in real numbers, with what is taken from CVXPY where
        something is, or the problem as CVXPY stores it, with the reason.
    programme : Programme
        The canonical form: minimise x'Px/2 + q'x over A x + s = b, s in cones.
    offset, sign : float
        The user's value is sign (value of ``programme`` + offset).
    evidence : dict
        What proves it, by the use of the lemma in `graphreg.conic.verify`: ``"primal"``, ``"dual"``,
        ``"contradiction"``, ``"descent"``, ``"dependent"`` or ``"dependent dual"``; each a `Reached` with the point
        (high + low) of the system of that name in `graphreg.conic.programme`, the radius within which an exact
        solution lies, the pairs of rows and columns and the core rows that solve it, and the rows that were left out.
    multipliers : dict
        Of a problem that is proved infeasible (Farkas' lemma): for each of the user's constraints, by name, what its
        rows are multiplied by, in the order in which CVXPY stores them, rounded to doubles. Those of inequalities are
        at least 0; in the sum, with rows that CVXPY adds itself, the variables cancel, and -1 >= 0 is left. Of a
        compiled Box those of all lower bounds come before those of all upper ones; of Zero, which is compiled as
        K w - b = z and z = 0, each is told twice. Empty elsewhere.
    by : dict
        Whose answer each of these was found near, in words: that of the solver, or another one that proves more.

    Examples
    --------
    >>> import cvxpy as cp
    >>> x = cp.Variable(2)
    >>> bounds = gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1.0]))
    >>> bounds.status
    'certified'
    """

    lower: float
    upper: float
    status: str
    message: str
    point: Mapping[str, Array]
    reported: float | None
    programme: Programme
    offset: float
    sign: float
    evidence: Mapping[str, Reached] = field(default_factory=dict)
    scope: str = PROVED
    by: Mapping[str, str] = field(default_factory=dict)
    given: str = ""
    multipliers: Mapping[str, Array] = field(default_factory=dict[str, Array])

    @property
    def gap(self) -> float:
        """``upper - lower``; inf where one of them is."""
        return self.upper - self.lower if np.isfinite(self.lower) and np.isfinite(self.upper) else float("inf")

    @property
    def relative_gap(self) -> float:
        """gap / max(1, |lower|, |upper|), as conic solvers measure it: of an optimum near 0 no other is small. Where
        both are below 1, what is printed says what it is of the larger, too, as ``graphreg verify`` measures it."""
        return self.gap / max(1.0, abs(self.lower), abs(self.upper)) if np.isfinite(self.gap) else float("inf")

    def holds(self, gap: float) -> bool:
        """True where both bounds are proved and `relative_gap`, of 1 where they are smaller, is at most ``gap``.

        Returns
        -------
        bool

        Examples
        --------
        >>> import cvxpy
        >>> x = cvxpy.Variable(2, name="x")
        >>> gr.certify(cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(x - 1)), [x <= 0])).holds(1e-6)
        True
        """
        return self.relative_gap <= gap

    @property
    def hash(self) -> str:
        """The hash by which proofs name the problem as this version of CVXPY stores it (SHA-256): ``graphreg verify
        proof.json --model HASH`` accepts proofs of that one only.

        Examples
        --------
        >>> import cvxpy
        >>> x = cvxpy.Variable(2, name="x")
        >>> found = gr.certify(cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1]))
        >>> found.prove("own.json").hash == found.hash
        True
        """
        from .prove import judge_of

        return judge_of(self.programme, self.offset, self.sign)[0].hash

    def prove(self, path: str | Path, *, force: bool = False) -> ProvedProblem:
        """Write a proof of what is said here, which ``graphreg verify`` checks in exact numbers, without graphreg.

        The file states the problem as CVXPY stores it, and exact points near those that `certify` found; the bounds in
        it are those of the exact points. They differ from these in the last digits, or by more where the value of your
        own formula at the point is better than that of the cones by which CVXPY states it.

        Parameters
        ----------
        path : str or Path
            A file that is there is replaced where it is such a proof, with ``force`` in any case.

        Returns
        -------
        ProvedProblem
            ``hash``, ``lower`` and ``upper`` (fractions, or None), and ``claims`` in words.

        Raises
        ------
        ProofError
            Where one of what is said has no exact point, with the reason, or nothing is said.

        Examples
        --------
        >>> import cvxpy
        >>> x = cvxpy.Variable(2, name="x")
        >>> proved = gr.certify(cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1])).prove("two.json")
        >>> proved.claims
        ('2.0 <= the optimal value', 'the optimal value <= 2.0')
        """
        from .prove import prove

        return prove(self.programme, self.offset, self.sign, self.evidence, path, force)

    def _relative(self, digits: int) -> str:
        """The relative gap, and where that is not of the larger of the bounds what it is of either."""
        size = max(abs(self.lower), abs(self.upper))
        other = "of 1, as solvers measure values below 1, and {} of the larger bound, as `graphreg verify` does"
        more = f" {other}".format(f"{self.gap / size:.{digits}g}") if 0.0 < size < 1.0 else ""
        return f"{self.relative_gap:.{digits}g}{more}"

    def _bounds(self) -> str:
        if self.status == "certified":
            return f"{self.lower:.10g} <= optimal value <= {self.upper:.10g}"
        if self.status == "one side only":
            below = np.isfinite(self.lower)
            return f"{self.lower:.10g} <= optimal value" if below else f"optimal value <= {self.upper:.10g}"
        return self.status

    def __repr__(self) -> str:
        gap = f", relative gap {self._relative(2)}" if self.status == "certified" else ""
        return f"<{type(self).__name__}: {self._bounds()}{gap}>"

    def __str__(self) -> str:
        return "\n  ".join([self._bounds(), *self._lines()])

    def _lines(self) -> list[str]:
        lines = []
        if np.isfinite(self.gap):
            lines.append(f"gap {self.gap:.3g} (relative {self._relative(3)}), {self.scope}")
        elif self.status != "refused":
            lines.append(self.scope)
        lower, upper = ("dual", "primal") if self.sign > 0.0 else ("primal", "dual")
        sides, whose = {lower: "lower bound", upper: "upper bound"}, dict[str, list[str]]()
        for use, by in self.by.items():
            whose.setdefault(by, []).append(sides.get(use, use))
        if whose:
            some = [by + f" ({' and '.join(uses)})" * (len(whose) > 1) for by, uses in whose.items()]
            lines.append(f"proved at points near {', and '.join(some)}")
        if self.reported is not None and np.isfinite(self.reported):
            side = "below the lower bound by" if self.reported < self.lower else "above the upper bound by"
            off = max(self.lower - self.reported, self.reported - self.upper)
            said = f"lies {side} {off:.2g}" if off > 0.0 else "is not outside the bounds"
            if self.given and off < np.inf:
                lines.append(f"at your variables' values the objective, {self.reported:.10g}, {said}; {self.given}")
            elif 0.0 < off < np.inf:
                lines.append(f"the solver's own value, {self.reported:.10g}, {said}")
        return [*lines, self.message] if self.message else lines

    def _html(self) -> Iterable[Html]:
        yield title(f"{type(self).__name__}: {self._bounds()}")
        yield facts({"status": self.status, "scope": self.scope})
        for line in self._lines():
            yield sentence(line)
