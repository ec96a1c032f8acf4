"""The interface of penalties: a convex function phi >= 0 with phi(0) = 0, applied to the rows of an array.

A new penalty is one file in this folder (or one class of the user's): a frozen dataclass that derives from
`AbstractPenalty` (or `AbstractNorm`, ...) and says ``value``, ``prox``, ``conjugate`` and ``cvxpy``. What else it may
say of itself has a default that is true of every penalty: where its flows may lie (``domain``), its kink at 0
(``gauge_at_zero``, ``pieces``), its curvature (``quadratic``, ``strong_convexity``), its exact form (``statement``,
``parts``, ``composed``, ``cvxpy_conjugate``), its formula (``notation``) and its compiled kind (``kernel``). The rest
is closed forms of what follows from these: faster, or a sharper bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ...base.lazy import cp
from ...base.shortcuts import shortcut
from ...checks import ChecksNames, check_fields
from ...errors import TermError
from ..bounds import largest_around
from ..records import Array, Named, Notation, Statement, names_of, stated
from ..rows import AbstractRows
from ._rows import column, gauge_of, nearby_subgradients, pieces_of, row_norm, split
from .domain import domain_of


class AbstractPenalty(ChecksNames, Named, ABC):
    """A convex penalty phi >= 0, phi(0) = 0, on the rows of an (m, k) array.

    Between two nodes phi must be even; a penalty that is not derives from `AbstractOneSided`.

    Attributes
    ----------
    domain : FlowDomain
        dom phi*, where the flows of an edge may lie: one of the kinds in `graphreg.terms.penalties.domain`.
    notation : Notation
        The notation of the penalty; where a class says none, a function with its name. A class may
        say the text alone, as a string with ``%z`` for the argument.

    Examples
    --------
    >>> import cvxpy as cp
    >>> cubic = gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 3))
    >>> isinstance(cubic, gr.Penalty), cubic.value(np.array([[1.0, 1.0]])).round(3).tolist()
    (True, [1.26])
    """

    def __new__(cls, *given: Any, **options: Any) -> Self:
        """Refuses rows, on which a penalty is called when it is made."""
        if given and isinstance(given[0], AbstractRows):
            name, rows = cls.__name__, given[0].text()
            raise TermError(f"{name} is a class: make a penalty and call it on the rows, as in {name}(...)({rows})")
        return super().__new__(cls, *given, **options)

    def __post_init__(self) -> None:
        """Refuses parameters that are not what their fields say they must be (see `graphreg.checks`)."""
        check_fields(self, TermError)

    @abstractmethod
    def value(self, z: Array) -> Array:
        """phi of each row, shape (m,); +inf outside its domain."""

    @abstractmethod
    def prox(self, v: Array, step: Any) -> Array:
        """argmin over p of ``step * phi(p) + 1/2 ||p - v||^2`` for each row; ``step`` is a number or one per row."""

    @abstractmethod
    def conjugate(self, u: Array) -> Array:
        """phi*(u) = sup over z of <u, z> - phi(z) for each row; +inf outside its domain, with zero tolerance."""

    @abstractmethod
    def cvxpy(self, Z: Any) -> Any:
        """A convex CVXPY expression with one value per row of the (m, k) expression Z; for an indicator, the list
        of its constraints."""

    # ---- what it may say of itself: where its flows may lie, its kink, its curvature --------------------------------
    domain = stated(domain_of)

    def gauge_at_zero(self, u: Array) -> Array:
        """The pull at 0 that the flow u takes up: inf {t >= 0 : u / t is a subgradient of phi at 0} for each row.

        As phi >= 0 and phi(0) = 0, the subgradients at 0 are the u with ``phi*(u) = 0``, that is with
        ``phi(z) >= <u, z>`` for every z (Rockafellar, Convex Analysis, theorem 23.5). So
        ``phi(z) - <u, z> >= (1 - t) phi(z)`` with t = gauge_at_zero(u): a norm gives its dual norm, a penalty that is
        smooth at 0 gives +inf but for u = 0.

        By default from ``conjugate``, by doubling and bisection, and with zero tolerance: a conjugate of which rounding
        leaves anything above 0 makes the answer larger, and what lies outside is never called inside. What overrides
        this may be too large, and never too small.
        """
        none = ~(self.value(np.zeros((1, u.shape[1]))) == 0.0).all()  # a set that does not contain 0
        return np.full(len(u), np.inf) if none else gauge_of(u, lambda rows: self.conjugate(rows) <= 0.0)

    def pieces(self, k: int) -> int | None:
        """p where phi(z) on k coordinates is the sum of the Euclidean norms of the consecutive pieces of p coordinates
        of z, as was tried: 1 for the l1 norm, k for the Euclidean norm; None where phi is no such sum.

        Each piece is the height of a second-order cone, and by itself 0 or smooth.
        """
        return pieces_of(self.value, k)

    is_maximum: ClassVar[bool] = False  # whether phi(z) is max_j |z_j|

    def envelope(self) -> float | None:
        """r where phi(z) is the least of r ||v||_2 + 1/2 ||z - v||_2^2 over v; None elsewhere."""
        return None

    def quadratic(self, k: int) -> Array | None:
        """Q (k, k) where phi(z) = 1/2 z'Qz on k coordinates; None elsewhere."""
        return None

    def strong_convexity(self) -> float:
        """The largest mu for which phi - mu/2 ||.||^2 is convex."""
        return 0.0

    # ---- its exact form: for proofs, the dual form, and where it is made of others ----------------------------------
    def statement(self, k: int) -> Statement | None:
        """The statement of the penalty on k coordinates in a proof; None where there is none, or where it
        is the sum that `parts` says."""
        return None

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]] | None:
        """Positive numbers and penalties of the library, where this is the sum of their products: a proof is then of
        that sum. None where it is none."""
        return None

    def composed(self) -> tuple[Array, AbstractPenalty] | None:
        """R (r, k) with r < k independent rows, and a penalty h on r coordinates, where phi(z) = h(Rz): its flows are
        R'q with r free numbers q, and phi*(R'q) = h*(q). None elsewhere."""
        return None

    def cvxpy_conjugate(self, U: Any) -> Any:
        """phi* as a CVXPY expression with one value per row of the (m, k) expression U, or as a list: the constraints
        of its domain, then the expression (left out where it is 0). Needed only for the dual form.

        By default that of the exact form: of a sum the least sum over flows of the parts that add up to U (Rockafellar,
        Convex Analysis, theorem 16.4), of h(Rz) h* at the q with U = R'q.
        """
        if parts := self.parts():
            flows = [cp.Variable(U.shape) for _ in parts]
            each = [split(phi.cvxpy_conjugate(flow / by)) for (by, phi), flow in zip(parts, flows, strict=True)]
            total = [by * value for (by, _), (value, _) in zip(parts, each, strict=True) if value is not None]
            domain = [constraint for _, constraints in each for constraint in constraints]
            return [sum(flows) == U, *domain, *([sum(total)] if total else [])]
        if (form := self.composed()) is not None:
            R, h = form
            q = cp.Variable((U.shape[0], len(R)))
            written = h.cvxpy_conjugate(q)
            return [q @ R == U, *(written if isinstance(written, list) else [written])]
        raise self._without_conjugate()

    # ---- derived; closed forms are faster, or sharper --------------------------------------------------------------
    def subgradient(self, z: Array) -> Array:
        """A subgradient of phi at each row; by default that of the nearby point prox(z, 1e-4), near enough, and far
        enough for a prox of some accuracy; where phi is so steep that this lies far from z, that of a shorter step."""
        most = np.sqrt(self.accuracy()) * np.maximum(row_norm(z), 1.0)
        u = nearby_subgradients(self.prox, z, np.full(len(z), 1e-4), most)
        return np.where((z == 0).all(axis=1)[:, None], 0.0, u)  # where phi is least

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        """prox of ``step * (weight phi)*`` at each row of v, by Moreau's identity; both are of shape (m,)."""
        return v - column(step) * self.prox(v / column(step), weight / step)

    def kernel(self) -> str:
        """The kind of a compiled `dual_prox` (see `graphreg.fast`): "box" or "ball" of the radius ``weight``, "square"
        for v / (1 + step / weight); empty where there is none."""
        return ""

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        """An upper bound of phi* over each box ``u +- spread``, (m,), whatever rounding does: certificates rest on it.
        +inf where that is not all inside dom phi*.

        By default from `conjugate`, whose values are trusted to 16 units in the last place: phi* is convex, and largest
        at the ends.
        """
        return largest_around(self.conjugate, u, spread, rowwise=True)

    def value_bound(self, z: Array, spread: Array) -> Array:
        """An upper bound of phi over each box ``z +- spread``, (m,). By default from `value`, trusted as `conjugate`
        is."""
        return largest_around(self.value, z, spread, rowwise=True)

    # ---- how it is used and called ---------------------------------------------------------------------------------
    def check(self, k: int) -> None:
        """Raise `TermError` where the penalty cannot act on k coordinates (a Quadratic of another size, ...)."""

    def acting_on(self, k: int) -> AbstractPenalty:
        """The penalty as it acts on k coordinates: what stands in the form of a problem. Itself, after `check`, where
        it is one formula for every k."""
        self.check(k)
        return self

    def accuracy(self) -> float:
        """The relative accuracy of ``value``, ``prox`` and ``conjugate``, to which the check holds them."""
        return 1e-8

    def _notation(self) -> Notation:
        name, latex = names_of(self)
        return Notation(f"{name}(%z)", f"%c {name}*(%u / %c)", "", f"{latex}(%z)", rf"%c \, {latex}^*(%u / %c)", "")

    notation = stated(_notation)

    def unwritten(self) -> str:
        """The reason for which `cvxpy` can write nothing, and the remedy, as a sentence that begins small; empty
        where it can."""
        return ""

    # ---- penalties from less ---------------------------------------------------------------------------------------
    @staticmethod
    def from_cvxpy(function: Any, *, rows: bool = False, name: str | None = None) -> AbstractPenalty:
        """A penalty whose four methods are derived from a convex CVXPY function of one row.

        Parameters
        ----------
        function : callable
            A CVXPY expression (k,) in, a convex scalar expression out.
        rows : bool
            True where the function takes the stacked (m, k) matrix and returns one value per row.
        name : str, optional
            How it is printed; by default the name of the function.

        More, and the errors: `graphreg.reading_cvxpy.penalty.from_cvxpy`.
        """
        return shortcut("Penalty.from_cvxpy")(function, rows=rows, name=name)

    @staticmethod
    def from_prox(value: Any, prox: Any, cvxpy: Any = None, *, name: str | None = None) -> AbstractPenalty:
        """A penalty from its value and its prox, whose conjugate is derived.

        Parameters
        ----------
        value : callable
            phi of each row of an (m, k) array, (m,): even, convex, >= 0, 0 at 0, and growing in every direction.
        prox : callable
            ``prox(v, step)``: for each row the p that minimises ``step * phi(p) + 1/2 ||p - v||^2``, (m, k); ``step``
            is one number per row, (m,).
        cvxpy : callable, optional
            A convex CVXPY expression with one value per row of an (m, k) expression; the exact route asks for it.
        name : str, optional
            How it is printed; by default the name of the function ``value``.

        More, and the errors: `graphreg.reading_prox.from_prox`.
        """
        return shortcut("Penalty.from_prox")(value, prox, cvxpy, name)

    # ---- a penalty is no term, until it is called on rows --------------------------------------------------------
    def __call__(self, rows: Any) -> Any:
        """The sum over the rows r of c_r phi((K w)_r - b_r), a term; rows are made of `graphreg.w`.

        Raises
        ------
        TermError
            For what is no rows.
        """
        return shortcut("Penalty.on_rows")(self, rows)

    __array_ufunc__ = None  # numpy scalars leave `number * penalty` to __rmul__

    def __mul__(self, other: Any) -> Any:
        raise TermError(
            f"{self.called()} is a penalty, a function of one vector, and no term; scale or add the sum that it "
            "stands in, for instance 0.1 * TotalVariation(graph, L2()) or 0.1 * gr.L2()(gr.w)"
        )

    __rmul__ = __truediv__ = __add__ = __radd__ = __mul__
