"""The user's own penalty, from a CVXPY function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from ..base.escaping import visible
from ..base.lazy import cp
from ..errors import GraphregError, TermError
from ..terms import Array, Notation
from ..terms.penalties import AbstractOneSided, AbstractPenalty, tried
from .examine import examine


@dataclass(frozen=True, eq=False)
class AbstractCvxpyPenalty(AbstractPenalty):
    """phi, given as a CVXPY function: on rows of each size the penalty that was found for that size (`acting_on`)."""

    function: Callable[[Any], Any]
    rows: bool = False
    name: str | None = None
    found: dict[int, AbstractPenalty] = field(
        repr=False, default_factory=dict[int, AbstractPenalty]
    )  # by size of row, when found out

    @abstractmethod
    def acting_on(self, k: int) -> AbstractPenalty:
        """What the function is on k coordinates."""

    def _found(self, k: int) -> AbstractPenalty:
        if k not in self.found:
            self.found[k] = examine(self.function, self.rows, k, self.called())
        return self.found[k]

    def check(self, k: int) -> None:
        self.acting_on(k)

    def cvxpy(self, Z: Any) -> Any:
        if self.rows:
            return self.function(Z)
        return cp.hstack([cp.sum(self.function(Z[i])) for i in range(Z.shape[0])])

    def value(self, z: Array) -> Array:
        return self.acting_on(z.shape[1]).value(z)

    def prox(self, v: Array, step: Any) -> Array:
        return self.acting_on(v.shape[1]).prox(v, step)

    def conjugate(self, u: Array) -> Array:
        return self.acting_on(u.shape[1]).conjugate(u)

    def called(self) -> str:
        return _label(self.function, self.name)

    def is_users(self) -> bool:
        return True  # the function is

    @property
    def notation(self) -> Notation:
        known = next(iter(self.found.values()), None)
        return super().notation if known is None else known.notation

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.called()}{', rows=True' if self.rows else ''})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class CvxpyPenalty(AbstractCvxpyPenalty):
    """An even penalty from a CVXPY function (see `from_cvxpy`)."""

    def acting_on(self, k: int) -> AbstractPenalty:
        if isinstance(found := self._found(k), AbstractOneSided):
            raise TermError(
                f"the penalty {self.called()} is not even on {k} coordinates, phi(-z) != phi(z): an edge between two "
                "nodes has no direction; for a node penalty, pass a function that shows this on rows of at most "
                f"{max(tried.SIZES)} coordinates"
            )
        return found


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneSidedCvxpyPenalty(AbstractCvxpyPenalty, AbstractOneSided):
    """A penalty from a CVXPY function that is not even: not for undirected edges (see `from_cvxpy`)."""

    def acting_on(self, k: int) -> AbstractPenalty:
        return self._found(k)


def from_cvxpy(
    function: Callable[[Any], Any], rows: bool = False, name: str | None = None
) -> CvxpyPenalty | OneSidedCvxpyPenalty:
    """A penalty whose four methods are derived from a CVXPY function.

    Parameters
    ----------
    function : callable
        Takes one row z, a CVXPY expression of shape (k,), and returns a convex scalar expression phi(z) with
        phi >= 0 and phi(0) = 0. Where its atoms have a domain (logarithms, entropies, powers, inverses) it is +inf
        outside, with zero tolerance. An indicator is refused: a constraint is a class of its own (see
        `AbstractConstraint`).
    rows : bool
        Whether the function takes all rows at once instead, of shape (m, k), and returns one value per row, (m,).
    name : str, optional
        How it is printed; by default the name of the function.

    Raises
    ------
    ConvexityError
        Where CVXPY's rules do not show that the function is convex; the message names the smallest guilty part.
    TermError
        Where it is anything else than a scalar convex function phi >= 0 with phi(0) = 0, or where it holds an atom
        that CVXPY evaluates to a tolerance only (an indicator, a rounded exponent); the message names the atom.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from_cvxpy(lambda z: cp.norm(z, 3), name="norm3")
    CvxpyPenalty(norm3)
    """
    if not callable(function):
        raise TermError(f"from_cvxpy takes a function of a CVXPY expression, got {function!r}")
    problems: set[str] = set()
    for k in tried.SIZES:
        try:
            phi = examine(function, rows, k, _label(function, name))
        except tried.SizeError as error:
            problems.add(str(error.__cause__))  # perhaps the function is for rows of another size
            continue
        kind = OneSidedCvxpyPenalty if isinstance(phi, AbstractOneSided) else CvxpyPenalty
        return kind(function, rows, name, {k: phi})
    if len(problems) == 1:  # the same for every size, so not about the size
        raise TermError(
            f"the penalty {_label(function, name)} cannot be written in CVXPY: {problems.pop()}"
            f"{_other_way(function, rows=not rows)}"
        )
    return CvxpyPenalty(function, rows, name)


def _other_way(function: Callable[[Any], Any], *, rows: bool) -> str:
    """What to pass, where the function works the other way: on all rows at once, or on one."""
    for k in tried.SIZES:
        try:
            examine(function, rows, k, "phi")
        except (GraphregError, tried.SizeError):
            continue
        return "; it takes all rows at once: pass rows=True" if rows else "; it takes one row: leave rows=True out"
    return ""


def _label(function: Callable[[Any], Any], name: str | None) -> str:
    name = visible(name or str(getattr(function, "__name__", "phi")))
    return "phi" if name == "<lambda>" else name.replace("%", "percent")  # with % begin the tokens of a `Notation`
