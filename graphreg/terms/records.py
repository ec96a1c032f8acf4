"""Records that terms and the canonical form share: the space of parameters, notation, cones, roles of edges;
and what copies of an object with other numbers in them have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, Self, TypeVar, cast, overload

import numpy as np

from ..base.declaring import in_library
from ..base.display import Brief
from ..base.escaping import upright
from ..base.messages import did_you_mean
from ..checks import sequence
from ..errors import TermError
from ..inputs import INTERCEPT, Standardised

Array = np.ndarray[Any, np.dtype[Any]]
Coordinate = str | tuple[str, Hashable]  # the name of a feature, or a feature and a class
T = TypeVar("T")
GROUND = -1  # the head of an edge from a node to the ground: (Kw)_e = w_i - center


@dataclass(frozen=True)
class Notation:
    """The notation of a function, as text and as LaTeX.

    ``%z`` stands for the argument, ``%y`` for a target, ``%u`` for the dual argument (flow or price) and ``%c`` for
    the weight. ``value`` is phi(z); ``conjugate`` is c phi*(u/c), empty where it is 0; ``domain`` is where that is
    finite, empty where it is everywhere; ``gradient`` is that of phi at z, empty where it is long or there is none
    (brackets around ``(%z)`` are left out where they are not needed).
    """

    value: str
    conjugate: str = ""
    domain: str = ""
    latex_value: str = ""
    latex_conjugate: str = ""
    latex_domain: str = ""
    gradient: str = ""
    latex_gradient: str = ""


class stated(Generic[T]):  # noqa: N801  (a decorator)
    """An attribute that a class makes of its objects, or a method finds, where no class derived from it states it
    itself: as a plain value, by a property, or again like this."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find = find

    def __get__(self, each: Any, owner: type[Any] | None = None) -> T:
        return getattr(type(each), self.find.__name__, self.find)(each)


# What follows, as in "h(-y u) where h(q) = ...", defines a function (or the matrix R) that precedes.
NAMED = r"\(\w+(?:[,;] \w+)?\) = "  # a name may have spaces, but not behind a comma
WHERE = re.compile(rf"(?: where | \\text\{{ where \}} )(?=[^()=]+{NAMED}|R = )|, (?:\\; )?(?=\S+{NAMED}|R = )")


def defined(text: str) -> list[str]:
    """A formula, and the definition of what stands in it, where there is one."""
    return WHERE.split(text, maxsplit=1)


class Named:
    """A function of which terms are made: a loss or a penalty, called by its class."""

    def called(self) -> str:
        """The name in messages and tables: that of its class."""
        return type(self).__name__

    def blamed(self) -> str:
        """What is wrong where a law fails, in words, if that is known of its kind; else empty."""
        return ""

    def is_users(self) -> bool:
        """True where the user wrote it, so that solves try its laws at their points (see
        `certificate.spot_checks`)."""
        return not in_library(type(self))

    def _without_conjugate(self) -> TermError:
        """The error where the dual form is asked for and no conjugate is written for CVXPY."""
        need = "has no method cvxpy_conjugate, which the dual form needs; add one, or compile the primal form"
        return TermError(f"{self.called()} {need}")


def names_of(term: Named) -> tuple[str, str]:
    """How a term is called, as text and as LaTeX."""
    name = term.called()
    return name, upright(name)


def notation_of(function: Any) -> Notation:
    """The notation of a loss or a penalty; a string is the text of its value, and all else goes by its name."""
    said = function.notation
    if isinstance(said, str):
        return replace(function._notation(), value=said)
    if not isinstance(said, Notation):
        wanted = "a string with %z for the argument, or a graphreg.terms.Notation"
        raise TermError(f"{type(function).__name__}.notation is {wanted}, got {said!r}")
    return said


@dataclass(frozen=True)
class Statement:
    """The statement of a loss or a penalty in a proof: a name of its format (docs/proofs.md), and the parameter that
    goes with the name: a number, or lists of numbers (None where a bound is not there). ``root`` is R (r, k) where
    flows are stated by t, ``u = R't``, because not every u is a flow."""

    name: str
    parameter: Any = None
    root: Array | None = None


@dataclass(frozen=True)
class RecessionCone:
    """{z : lower <= z <= upper, equations z = 0}: the directions in which a function does not grow.

    ``exact`` is False where the equations are known to rounding only.
    """

    lower: Array
    upper: Array
    equations: Array | None = None
    exact: bool = True

    @property
    def still(self) -> Array:
        """The coordinates that may not move, a mask."""
        return (self.lower == 0) & (self.upper == 0)

    @property
    def one_sided(self) -> list[tuple[Array, float]]:
        """The coordinates that may only grow, and those that may only fall, with their sign."""
        return [((bound == 0) & ~self.still, sign) for bound, sign in ((self.lower, 1.0), (self.upper, -1.0))]


@dataclass(frozen=True)
class Descent:
    """The directions v of the predictors of some samples along which no loss grows: ``falls v >= 0``, ``still v = 0``.

    ``falls`` (q, size of the predictors) is sparse; row q belongs to the sample ``sample[q]``, which falls along v
    wherever that row is positive: for ever where ``for_ever[q]``, else to its minimum and no further. ``still`` are
    the entries of the predictors that must not move.
    """

    falls: Any
    sample: Array
    for_ever: Array
    still: Array


def feature_of(coordinate: Coordinate) -> str:
    """The feature that a coordinate of w belongs to."""
    return coordinate if isinstance(coordinate, str) else coordinate[0]


def name_of(coordinate: Coordinate) -> str:
    """The printed name of a coordinate: ``age``, or ``age[setosa]``."""
    return coordinate if isinstance(coordinate, str) else f"{coordinate[0]}[{coordinate[1]}]"


@dataclass(frozen=True, repr=False)
class Space(Brief):
    """The parameters of a problem: ``n_observed`` nodes that carry labels of the user, and the coordinates.

    ``coordinates`` are the names of the d columns of w: features, or pairs (feature, class) where a feature has one
    coefficient per class. ``penalised`` are the coordinates that a node penalty takes by default (all but the
    intercept). ``units`` are those of coefficients as tables have them, where features were standardised.
    """

    index: Mapping[Hashable, int]
    coordinates: tuple[Coordinate, ...]
    penalised: Array
    doubt: str = ""  # of a label that may be misspelt, a sentence
    units: Standardised | None = None

    @property
    def names(self) -> list[str]:
        """The coordinates as they are printed."""
        return [name_of(coordinate) for coordinate in self.coordinates]

    @property
    def n_observed(self) -> int:
        return len(self.index)

    @property
    def unit(self) -> str:
        """The words behind a distance between parameters, which penalties and bounds measure as the data stand there:
        empty where tables have the same units."""
        return "" if self.units is None else " (per standard deviation of a feature)"

    def in_units(self, w: Array) -> Array:
        """Coefficients (n, d) in the units of the columns that the data were read from."""
        return w if self.units is None else self.units.in_units(w, self.coordinates)

    def covariance_in_units(self, V: Array) -> Array:
        """Covariances (..., d, d) of coefficients in the units of `in_units`, which is linear."""
        if self.units is None:
            return V
        A = self.in_units(np.eye(len(self.coordinates)))
        return A.T @ V @ A

    def from_units(self, v: Array) -> Array:
        """The inverse of `in_units`."""
        return v if self.units is None else self.units.from_units(v, self.coordinates)

    def select(self, features: Sequence[str] | None, where: str) -> Array | None:
        """The columns of the named features (all its classes, where a feature has several); None (all) where none are
        named."""
        if features is None:
            return None
        one = isinstance(features, (str, Mapping)) or not isinstance(features, Iterable)
        what = f"features of {where}"
        names: list[Any] = [features] if one else sequence(features, what, "a list of names", TermError)
        columns: dict[str, list[int]] = {}
        for j, coordinate in enumerate(self.coordinates):
            columns.setdefault(feature_of(coordinate), []).append(j)
        for name in names:
            if not isinstance(name, Hashable) or name not in columns:
                hint = did_you_mean(name, columns) or f"; there are {', '.join(list(columns)[:8])}"
                hint += "; read the data with intercept=True" * (name == INTERCEPT)
                hint += "; without features of data name all by Problem(model, features=[...])" * ({*columns} == {"y"})
                raise TermError(f"{where} names the unknown feature {name!r}{hint}")
        if len(set(names)) < len(names) or not names:
            raise TermError(f"{where}: features must be distinct names, at least one, got {names}")
        return np.array([j for name in names for j in columns[name]])


@dataclass(frozen=True)
class Bends:
    """A piecewise linear derivative of a number r, one per sample: ``slope r + height`` far to the left.

    Attributes
    ----------
    slope, height : (M,) arrays
    knots : tuple of triples of (M,) arrays
        In their order: its place, by how much the slope changes there, and by how much the derivative jumps.
    """

    slope: Array
    height: Array
    knots: tuple[tuple[Array, Array, Array], ...]

    def at(self, r: Array) -> Array:
        """The derivative; on a jump the end at its left."""
        out = self.slope * r + self.height
        for place, change, jump in self.knots:
            out = out + np.where(r > place, change * (r - place) + jump, 0.0)
        return out

    def pieces(self) -> tuple[Array, list[tuple[Array, ...]]]:
        """f' where knots part it, as a height and what rises beside it: rows, sides, places, q and widths of pieces,
        f'(r) = height + sum of side b, where b takes max over 0 <= b <= width of side (r - place) b - q b^2 / 2."""
        out, first, slope = list[tuple[Array, ...]](), self.knots[0][0], self.slope

        def add(side: float, place: Array, rises: Array, q: Array, width: Any) -> None:
            of = np.flatnonzero(rises > 0.0)
            out.append((of, np.full(len(of), side), place[of], q[of], np.broadcast_to(width, place.shape)[of]))

        with np.errstate(divide="ignore", invalid="ignore"):
            add(-1.0, first, slope, 1.0 / slope, np.inf)
            for k, (place, change, jump) in enumerate(self.knots):
                add(1.0, place, jump, 0.0 * place, jump)
                slope, after = slope + change, self.knots[k + 1][0] if k + 1 < len(self.knots) else np.inf
                add(1.0, place, slope, 1.0 / slope, slope * (after - place))
        return self.height + self.slope * first, out

    def mirrored(self) -> Bends:
        """The bends of r -> f(-r)."""
        slope, height = self.slope, self.height
        for place, change, jump in self.knots:
            slope, height = slope + change, height - change * place + jump
        turned = tuple((-place, -change, jump) for place, change, jump in reversed(self.knots))
        return Bends(slope, -height, turned)


@dataclass(frozen=True)
class Role:
    """The role of the edges of a block in the model. Names are for printing; what has to decide asks the role.

    Attributes
    ----------
    kind : {"ground", "graph", "hierarchy", "server", "rows"}
        Those of a node penalty lead to the ground, those of a baseline's star from its clients to a server.
    level, levels : int
        Which level of how many of a hierarchy, from the leaves (1) upwards; 0 elsewhere.
    """

    kind: Literal["ground", "graph", "hierarchy", "server", "rows"]
    level: int = 0
    levels: int = 0

    @property
    def of_leaves(self) -> bool:
        """True where the edges lead from nodes to their clusters."""
        return self.kind == "hierarchy" and self.level == 1

    @property
    def link(self) -> str:
        """The name of messages along the edges in the ledger."""
        if self.kind == "hierarchy":
            return "within clusters" if self.of_leaves else "between clusters"
        return {"server": "to the server", "rows": "rows"}.get(self.kind, "graph")


TO_GROUND, IN_GRAPH, IN_ROWS, TO_SERVER = Role("ground"), Role("graph"), Role("rows"), Role("server")


# ---- what copies have in common --------------------------------------------------------------------------------------
COMMON = "_common"


class shared(cached_property[T]):  # noqa: N801  (a decorator)
    """A cached property that follows from what an object has in common with its copies made by `alike`."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        name, key = str(self.attrname), self.key(instance)
        known = vars(instance).setdefault(COMMON, {})
        if name not in known or known[name][0] != key:
            known[name] = key, self.func(instance)
        vars(instance)[name] = known[name][1]
        return known[name][1]

    def key(self, instance: Any) -> Any:
        """The key of what it follows from beside that: where this is another, it is found anew."""
        return None


def alike(old: T, **changes: Any) -> T:
    """``old`` with changed fields, from which none of its `shared` properties follow."""
    new: T = replace(cast(Any, old), **changes)
    vars(new)[COMMON] = vars(old).setdefault(COMMON, {})
    return new
