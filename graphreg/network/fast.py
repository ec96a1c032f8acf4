"""The interface of compiled code that stands in for numpy, and the sizes from which on it is asked.

Nothing here compiles. A package of `Kernels` is offered by whoever has one (see `graphreg.base.compiled.offer`); who
could be faster asks `kernels`, and takes numpy where there are none. Iterates agree to rounding, and the certificate
judges both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Protocol

from ..base.compiled import Code, compiles, offered
from ..form import Form
from ..oracles import AbstractNodeProx, Memory
from ..terms import Array, EdgeBlock, Packed

SPEED = 120_000_000  # entries of the flows times rounds that compiled code is a second ahead of numpy
WORTH = SPEED // 20  # fewer are not worth code that is at hand
EXPECTED = 100  # rounds, at least, that are still to come
FEW = 30  # of them, where code is to be bought
COMPILING = 3.5  # seconds, rounds and looks
SOME = 250  # rounds after which more are expected: neighbours are brought near each other

Flows = tuple[Array, ...]
Memories = tuple[Memory, ...]


def compiled_from(entries: int, price: float, earlier: int = 0) -> float:
    """The number of rounds of a run after which they are compiled, where the flows of the graph have so many numbers,
    the code costs so much, and so many rounds were taken before the run: from the first one on large graphs, later on
    others. So the bits of an iterate depend on the problem, on whether numba is there, and on what code was at hand
    when the run began, and never on the clock."""
    if not entries:
        return float("inf")
    return max(WORTH / entries - EXPECTED - earlier, price * SPEED / entries - FEW, 0.0)


def code_of(form: Form) -> Code:
    """The code of rounds on a form, and of looks at them."""
    edges = {each.penalty.kernel() for each in form.edges}
    losses = {type(block.loss).__name__ for block in form.samples}
    return _code("_".join([str(form.d), *sorted(edges), *sorted(losses)]))


@cache
def _code(name: str) -> Code:
    return Code(name, COMPILING)


def pays(form: Form, done: int) -> bool:
    """True where looks at so many rounds on a form are to be compiled, as rounds are where their code is at hand, and
    something compiles."""
    return code_of(form).price <= 0.0 and done >= compiled_from(form.differences, 0.0) and compiles()


# ---- rounds of the primal-dual method --------------------------------------------------------------------------------
class AbstractImage(ABC):
    """T x = (w+, u+) of a round, found when somebody asks."""

    @cached_property
    @abstractmethod
    def w(self) -> Array:
        """(n, d)."""

    @cached_property
    @abstractmethod
    def u(self) -> Flows:
        """(m, k) per block, in the order of the form."""


class AbstractFlatPoint(AbstractImage):
    """Parameters and flows as rounds hold them, in an order of their own."""

    rounds: Any  # `AbstractRounds` that hold it, which take no others'


class AbstractRounds(ABC):
    """Compiled rounds on a form.

        w+ = prox of tau f at w - tau K'u,     u+ = prox of sigma g* at u + sigma (K(2 w+ - w) - center),

    both relaxed, with tau_i = s/deg_i and sigma = 1/(2 s), on edges to the ground 1/s.
    """

    rest: Rest | None

    @property
    @abstractmethod
    def begins(self) -> bool:
        """True where proxes ask where to begin."""

    @property
    @abstractmethod
    def at_once(self) -> int:
        """Rounds that may go by before anybody looks at the clock."""

    @abstractmethod
    def iterate_of(self, w: Array, u: Flows) -> AbstractFlatPoint:
        """A point (n, d) with flows (m, k), as rounds hold it."""

    @abstractmethod
    def rounds(
        self, x: Any, warm: Array | None, s: float, rho: float, memory: Memories, count: int
    ) -> tuple[AbstractFlatPoint, AbstractImage, Memories]:
        """The point x, as these rounds hold it, after so many of them, T x of the last one, and what the proxes
        remember; ``warm`` (n, d) is where they begin. Nothing of x changes."""

    @abstractmethod
    def way(self, a: Any, b: Any) -> tuple[float, float]:
        """sum_i deg_i ||dw_i||^2, and sum_e (2, to the ground 1) ||du_e||^2."""

    @abstractmethod
    def trim(self) -> None:
        """Give back memory that only rounds need."""


@dataclass(frozen=True)
class Rest:
    """The needs of rounds on a part of a graph from the rest: how many numbers the flows of the whole have, and who
    writes the rows of neighbours into an array (n, d) of the part, and records the messages."""

    entries: int
    fill: Callable[[Array], None]


class Orders(Protocol):
    """The order in which rounds go through nodes and edges."""


# ---- what a package of kernels has -----------------------------------------------------------------------------------
class Passes(Protocol):
    """A block of edges with a norm, in passes over its edges."""

    def add_adjoint(self, u: Array, g: Array) -> None:
        """K'u of the clipped flows is added to g (n, d)."""

    def residual(self, w: Array, u: Array) -> tuple[float, float]:
        """sum c ||z||, and sum of c ||z|| - <u, z> of the clipped flows, z = Kw - center."""
        ...

    def unite(self, share: float, u: Array, parent: Array, whole: bool) -> None:
        """Nodes, unless ``whole`` entries, that are tied by flows shorter than ``share`` c come into one group."""


class Kernels(Protocol):
    """A package of compiled code."""

    def edge_passes(self, edge: EdgeBlock, d: int) -> Passes | None:
        """None where the penalty has no kernel, or is no norm."""
        ...

    def group_numbers(self, parent: Array) -> tuple[Array, int]:
        """The number of each entry's group, -1 with the ground, and how many there are; see `Passes.unite`."""
        ...

    def group_means(self, number: Array, count: int, values: Array) -> Array:
        """The rows of values (n, k), each the mean of its group; 0 at the ground."""
        ...

    def packed_spreads(self, H: Packed, shift: Array) -> tuple[Packed, Array]:
        """The inverses of H_i + shift_i I, positive definite, and the products of the traces of such a matrix and of
        its inverse, (n,); inf where a matrix is singular in floats, and its inverse any numbers."""
        ...

    def packed_products(self, A: Packed, v: Array) -> Array:
        """A_i v_i for v (n, d)."""
        ...

    def orders_of(self, form: Form, whole: bool) -> Orders:
        """The order for a form whose nodes stand as they are, the ``whole`` graph or a part of it."""
        ...

    def near_orders(self, form: Form, orders: Orders) -> Orders:
        """The orders with neighbours near each other, where that helps."""
        ...

    def rounds_of(
        self, form: Form, proxes: tuple[AbstractNodeProx, ...], stepped: Array, orders: Orders, rest: Rest | None
    ) -> AbstractRounds:
        """The rounds with the proxes of the form's losses, and the degrees by which nodes step. On a part of a graph
        nothing is done otherwise than on another one that has the same node or edge."""
        ...


def kernels() -> Kernels | None:
    """The kernels that are there, where some were bought."""
    return offered() if Code.loaded else None
