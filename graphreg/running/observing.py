"""Observers: the iterates of a run as its method holds them, kept in arrays. Nothing that they show is certified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..base.messages import did_you_mean, shown
from ..base.shortcuts import shortcut
from ..checks import ChecksFields, checked, inside, is_whole, sequence, whole
from ..errors import MethodError
from ..form import Form
from ..terms import Array

if TYPE_CHECKING:
    import pandas as pd

    from ..base.tables import Table
    from ..network import Ledger
    from .method import AbstractIteration, Point

VIEWS = ("w", "flows", "prices")
STATE = "state."
KEPT = 2**25  # bytes of observations that a checkpoint holds
Seen = Array | tuple[Array, ...]  # of blocks of edges or of samples an array each
S = TypeVar("S", Array, tuple[Array, ...], Seen)


class Observation:
    """The view of an observer after a round: the iterate itself, and not what certificates make of it.

    Attributes
    ----------
    round : int
        0 before the first one.
    center : (d,) array
        Around which the method runs: it is added in ``w`` already, and in nothing of ``state``.
    form : Form
        What the method minimises: of a baseline the problem that it solves instead.
    """

    def __init__(
        self, form: Form, method: AbstractIteration, state: Any, k: int, center: Array, ledger: Ledger | None = None
    ) -> None:
        self.round, self.center, self.form = k, center, form
        self._method, self._state, self._ledger = method, state, ledger

    @cached_property
    def _point(self) -> Point:
        return self._method.point(self._state)

    @cached_property
    def w(self) -> Array:
        """Parameters (n, d), in node order, latent nodes last; 0 where no loss reaches."""
        return np.where(self.form.free[:, None], 0.0, self._point[0] + self.center)

    @property
    def coef(self) -> Array:
        """The parameters (n, d) of the user's nodes, in node order, as `Solution.coef`."""
        return self.w[: self.form.space.n_observed]

    @cached_property
    def _sent(self) -> tuple[int, int]:
        _ = self._point  # actors tell with it what they have sent
        return (0, 0) if self._ledger is None else self._ledger.sent()

    @property
    def messages(self) -> int:
        """The messages of the method and its adaptation so far, without those of certificates."""
        return self._sent[0]

    @property
    def bytes(self) -> int:
        """The bytes of these messages."""
        return self._sent[1]

    def predict(self, frame: Any, kind: str = "response") -> pd.Series | pd.DataFrame:
        """Predictions for the rows of a frame by the parameters of this round: see `Solution.predict`."""
        return shortcut("Observation.predict")(self.form, self.coef, frame, kind)

    def score(self, frame: Any, by: str = "node") -> Table:
        """The scores of these predictions, of each node or of all together: see `Solution.score`."""
        return shortcut("Observation.score")(self, frame, by)

    @property
    def flows(self) -> tuple[Array, ...]:
        """u (m, k) of every block of edges, as the method holds them: neither conserved nor clipped.

        Raises `MethodError` for methods that hold none.
        """
        if self._point[1] is None:
            raise MethodError(f"{self._method.name} holds no flows; observe 'w', or its state")
        return _closed(self._point[1])

    @cached_property
    def prices(self) -> tuple[Array, ...]:
        """a of every block of samples: what proxes left, and the gradients of smooth losses at ``w``."""
        given = self._point[2]
        found = [block.prices(self._point[0]) for block in self.form.samples] if given is None else given
        return _closed(tuple(found))

    @cached_property
    def state(self) -> dict[str, Seen]:
        """The other arrays of the method, by the names of the fields of its state: ``state["theta"]``,
        ``state["x.w"]``."""
        return {name: _closed(value) for name, value in self._method.held(self._state).items()}


class Standing:
    """The stand-in for a method where it is a point as such that is looked at: the state is the point."""

    name = "the point"

    def point(self, state: Point) -> Point:
        return state

    def held(self, state: Point) -> dict[str, Seen]:
        return {}


def seen_at(form: Form, w: Array, k: int = 0) -> Observation:
    """The view of parameters (n, d) that no method of the library holds, after round k."""
    method: Any = Standing()
    return Observation(form, method, (w, None, None), k, np.zeros(form.d))


def _closed(value: S) -> S:
    """The numbers, which cannot be written to: the method goes on with them."""
    if isinstance(value, tuple):
        return tuple(map(_closed, value))  # pyright: ignore[reportReturnType]
    out = value.view()
    out.flags.writeable = False
    return out


@dataclass(frozen=True)
class Observer(ChecksFields):
    """The quantities of a run that are observed, and after which rounds; see `Problem.solve`.

    Parameters
    ----------
    what : str, sequence of str, or mapping from names to functions
        "w", "flows", "prices", or "state." and a field of the method's state, as in "state.theta". A function takes
        the `Observation` of a round, and returns numbers of one shape: ``{"error": lambda at: abs(at.w - w).max()}``.
    rounds : int or sequence of int, optional
        After every so many rounds, or after these. None (default): 0, 1, ..., 20, 22, 24, ..., every k + k/10 rounds.
        But for rounds that are named, the last round of a run is observed as well.
    memory : float
        Bytes that the observations may take, 32 MiB by default (and twice that while they are put together). Where
        they are full, every second one is left out, and from then on every second one is made; rounds that are named
        and do not fit are refused.

    Examples
    --------
    >>> look = gr.Observer("w", rounds=[10, 20])
    >>> run = problem.solve(gr.PrimalDual(), rounds=20, gap=0, observe=look)
    >>> run.observed["w"].shape
    (2, 4, 2)
    """

    what: Any = "w"
    rounds: Any = None
    memory: float = checked(inside("[1, inf)", "a number of bytes, at least 1"), float(KEPT))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "what", _read(self.what))
        if self.rounds is not None:
            object.__setattr__(self, "rounds", _rounds(self.rounds))

    def __call__(self, at: Observation) -> dict[str, Any]:
        """The values that are looked at after a round, by name."""
        return {name: look(at) for name, look in self.what.items()}

    def __str__(self) -> str:
        grid = "a geometric grid" if self.rounds is None else self.rounds
        return f"{', '.join(self.what)} at the rounds {grid}"

    @property
    def named(self) -> bool:
        """True where the rounds are named one by one."""
        return isinstance(self.rounds, tuple)


def observer_of(value: Any) -> Observer:
    """The observer from what a user gives: an Observer, or what it observes."""
    return value if isinstance(value, Observer) else Observer(value)


def grid_of(observer: Observer) -> Iterator[int]:
    """The rounds that are observed, in their order, as long as all of them fit."""
    if isinstance(observer.rounds, tuple):
        return iter(observer.rounds)
    return _geometric() if observer.rounds is None else count(0, observer.rounds)


def _rounds(given: Any) -> int | tuple[int, ...]:
    """Every so many rounds, or the rounds in their order."""
    if is_whole(given):
        return int(whole(1)(given, "Observer(rounds=...)", MethodError))
    what, wanted = "Observer(rounds=...)", "a number of rounds, or a sequence of the rounds"
    if isinstance(given, (str, bytes)):
        raise MethodError(f"{what} must be {wanted}, got {shown(given)}")
    each = sequence(given, what, wanted, MethodError)
    return tuple(sorted({int(whole(0)(k, f"each of {what}", MethodError)) for k in each}))


def _geometric() -> Iterator[int]:
    k = 0
    while True:
        yield k
        k += max(1, k // 10)


# ---- what is looked at -----------------------------------------------------------------------------------------------
def _read(what: Any) -> dict[str, Callable[[Observation], Any]]:
    """The functions by name."""
    if isinstance(what, Mapping):
        for name, look in what.items():
            if not isinstance(name, str) or not callable(look):
                raise MethodError(f"an observer is given functions of an Observation by name, got {name!r}: {look!r}")
        out = dict(what)
    else:
        wanted = "names, or functions by name"
        each = [what] if isinstance(what, str) else sequence(what, "what an observer sees", wanted, MethodError)
        out = {name: _view(name) for name in each}
    if not out:
        raise MethodError("an observer is told what to see, such as 'w', and got nothing")
    return out


def _view(name: Any) -> Callable[[Observation], Any]:
    if isinstance(name, str) and name.startswith(STATE):
        return partial(_of_state, name=name.removeprefix(STATE))
    if not isinstance(name, str) or name not in VIEWS:
        known = f"{', '.join(map(repr, VIEWS))} or 'state.' and a field of the method's state"
        raise MethodError(f"an observer sees {known}, got {shown(name)}{did_you_mean(name, VIEWS)}")
    return attrgetter(name)


def _of_state(at: Observation, name: str) -> Seen:
    if name not in at.state:
        known = ", ".join(STATE + each for each in at.state)
        raise MethodError(f"the method's state has no numbers {name!r}; it has {known}")
    return at.state[name]


def entries_of(value: Any) -> list[str]:
    """The labels of the numbers of a frame or column of pandas, in the order of its array; none of anything else."""
    axes = getattr(value, "axes", None)
    return [", ".join(map(str, labels)) for labels in product(*axes)] if isinstance(axes, list) else []


def copied(name: str, value: Any) -> Seen:
    """Numbers of their own: the method may go on with its arrays, and the user with theirs."""
    return tuple(_floats(name, each) for each in value) if isinstance(value, tuple) else _floats(name, value)


def _floats(name: str, value: Any) -> Array:
    """Floats, or complex numbers: where the first round gives the whole number 0, a later one may give 0.5."""
    try:
        out = np.array(value)
    except ValueError:  # rows of several lengths
        out = np.array(None)
    if out.dtype.kind not in "biufc":
        raise MethodError(f"the function {name!r} of the observer must return numbers, got {shown(value)}")
    return out.astype(np.result_type(out.dtype, float), copy=False)
