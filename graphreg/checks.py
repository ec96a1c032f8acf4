"""Checks of arguments: one per kind of value, for fields of dataclasses and for arguments of functions.

A field says what it may be, and the class checks all its fields when an object is made (methods, losses and penalties
do so in their bases; where a class has a ``__post_init__`` of its own, that calls ``super().__post_init__()``):

    @dataclass(frozen=True)
    class Relaxed(AbstractIteration):
        balance: float | None = checked(positive, None)
        relaxation: float = checked(inside("(0, 2)"), 1.8)

An argument of a function is checked by calling the check: ``fraction(level, "level")`` returns it, or raises a
`ModelError`, "level must be a number between 0 and 1, got 95".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache, wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar, ParamSpec, Self, TypeGuard, TypeVar, get_type_hints, overload

import numpy as np

from .base.messages import did_you_mean, either, near, shown
from .errors import ArgumentError, GraphregError, MethodError, ModelError

P = ParamSpec("P")
T = TypeVar("T")
Array = np.ndarray[Any, np.dtype[Any]]


LARGEST = 2**63 - 1  # of whole numbers, as arrays hold them


def is_number(value: object) -> TypeGuard[float]:
    """True where a value is a real number that a float can be, of Python's or numpy's; True and False are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_whole(value: object) -> TypeGuard[int]:
    """True where a value is a whole number that an array can hold, of Python's or numpy's; True and False are none, 2.0
    neither."""
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) <= LARGEST


def is_switch(value: object) -> TypeGuard[bool]:
    return isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class Check:
    """The condition that a value must meet, in words (``"a positive finite number"``) and as a test.

    ``check(value, what, error, owner)`` returns the value, or raises the error: "*what* must be *wanted*, got *value*"
    ("*Owner(what=...)* must be ..." where there is an owner), and what ``hint`` says of the value.
    ``check | other`` accepts what either does, ``check | None`` also None.
    """

    wanted: str
    holds: Callable[[Any], bool]
    hint: Callable[[Any], str] = lambda _: ""

    def __call__(self, value: Any, what: str, error: type[GraphregError] = ModelError, owner: str = "") -> Any:
        if not self.holds(value):
            name, space, rest = what.partition(" ")
            said = f"{owner}({name}=...){space}{rest}" if owner else what
            raise error(f"{said} must be {self.wanted}, got {shown(value)}{self.hint(value)}")
        return value

    def __or__(self, other: Check | None) -> Check:
        second = nothing if other is None else other
        words = f"{self.wanted}{',' * (other is None and ',' in self.wanted)} or {second.wanted}"
        return replace(self, wanted=words, holds=lambda value: self.holds(value) or second.holds(value))

    def with_remedy(self, remedy: str) -> Check:
        """The check with what to do about it at the end of its message."""
        return replace(self, hint=lambda _: f"; {remedy}")


@dataclass(frozen=True)
class Each(Check):
    """A check of one value, or of ``every`` value in a mapping; the message names the key of the guilty one."""

    every: Check | None = None
    of: str = "node"

    def __call__(self, value: Any, what: str, error: type[GraphregError] = ModelError, owner: str = "") -> Any:
        if not isinstance(value, Mapping):
            return super().__call__(value, what, error, owner)
        for key, entry in value.items():
            (self.every or self)(entry, f"{what} of the {self.of} {key!r}", error, owner)
        return value


# ---- the kinds -------------------------------------------------------------------------------------------------------
def inside(interval: str, wanted: str = "") -> Check:
    """A number in an interval: ``"[0, 1)"``, ``"(1/2, 1]"``, ``"(0, inf)"``."""
    low, high = (float(end) if "inf" in end else float(Fraction(end)) for end in interval[1:-1].split(","))
    left, right = interval[0] == "[", interval[-1] == "]"

    def holds(value: Any) -> bool:
        inner = is_number(value) and low <= value <= high
        return inner and (left or value != low) and (right or value != high)

    return Check(wanted or f"a number in {interval}", holds)


def whole(least: int, wanted: str = "a whole number") -> Check:
    """A whole number that is not less than ``least``."""
    return Check(f"{wanted}, at least {least}", lambda value: is_whole(value) and value >= least)


def one_of(*known: str) -> Check:
    """One of some names; the message says which was probably meant."""
    words = either(map(repr, known)) if len(known) < 3 else f"one of {', '.join(map(repr, known))}"
    return Check(words, lambda x: isinstance(x, str) and x in known, lambda x: did_you_mean(x, known))


def among(*known: str) -> Check:
    """One of some names, or several of them."""
    words = f"one or several of {', '.join(map(repr, known))}"
    return Check(words, lambda value: all(each in known for each in several(value)))


def several(given: Any) -> tuple[Any, ...]:
    """One or several names as a tuple."""
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def instance(kind: type[Any], wanted: str) -> Check:
    """An object of a class; where the class itself is given the message says to call it."""

    def hint(value: Any) -> str:
        given = "data" * ("(data)" in wanted)
        return f"; write {value.__name__}({given})" if isinstance(value, type) and issubclass(value, kind) else ""

    return Check(wanted, lambda value: isinstance(value, kind), hint)


def per(of: str, check: Check, mapping: str = "") -> Check:
    """One value for all nodes (or whatever ``of`` names) or a mapping from their labels; only the latter where
    ``mapping`` says in words what it is."""
    return Each(mapping or check.wanted, (lambda _: False) if mapping else check.holds, check.hint, check, of)


nothing = Check("None", lambda value: value is None)
positive = inside("(0, inf)", "a positive finite number")
nonnegative = inside("[0, inf)", "a non-negative number")
fraction = inside("(0, 1)", "a number between 0 and 1")
count = whole(1)
counts = per("node", count)
seed = whole(0)
switch = Check("True or False", is_switch)
seconds = inside("(0, inf]", "a positive number")
SWITCHES = {"bool": switch, "bool | None": switch | None}


def text(wanted: str = "text") -> Check:
    return Check(wanted, lambda value: isinstance(value, str))


def function(wanted: str = "a function") -> Check:
    """Something that can be called."""
    return Check(wanted, callable)


def unmasked(value: Any, what: str, error: type[GraphregError] = ModelError) -> None:
    """Refuse masked entries of a numpy array: what lies behind a mask is no data."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        first = tuple(map(int, np.argwhere(np.ma.getmaskarray(value))[0]))
        raise error(f"{what} is masked at {first}; drop what is masked, or fill it in with .filled(...)")


def numbers(value: Any, what: str, wanted: str = "numbers", error: type[GraphregError] = ModelError) -> Array:
    """An array of floats of its own, of whatever shape; text, truth values, complex and masked entries are refused."""
    unmasked(value, what, error)
    try:
        given = np.array(value)
        if given.dtype.kind in "iuf" or (given.dtype.kind == "O" and all(map(is_number, given.flat))):
            return given.astype(float)
    except (TypeError, ValueError):
        pass
    raise error(f"{what} must be {wanted}, got {shown(value)}")


def sequence(values: Any, what: str, wanted: str = "a sequence", error: type[GraphregError] = ModelError) -> list[Any]:
    """The entries of a sequence. A set has no order that would be the same tomorrow."""
    unmasked(values, what, error)
    if isinstance(values, (set, frozenset)) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        hint = "; a set has no order, sort it into a list" if isinstance(values, (set, frozenset)) else ""
        raise error(f"{what} must be {wanted}, got {shown(values)}{hint}")
    return list(values)


def positions(rows: Any, M: int, what: str) -> Any:
    """The places that a mask or positions name, of M rows."""
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.shape == (M,):
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind not in "iu":
        raise ModelError(f"{what} must be a mask of {M} entries or at least one position, got {rows!r}")
    if chosen.min() < 0 or chosen.max() >= M:
        raise ModelError(f"{what} name row {chosen[np.argmax(np.abs(chosen))]}; there are {M} rows, counted from 0")
    if len(np.unique(chosen)) < len(chosen):
        raise ModelError(f"{what} name a row twice; leave one of them")
    return np.sort(chosen).astype(np.intp)


# ---- names of arguments ----------------------------------------------------------------------------------------------
OTHER_NAMES = {
    "gap": ("tol", "tolerance", "atol", "rtol", "eps", "eps_abs", "eps_rel", "accuracy", "precision"),
    "rounds": ("max_iter", "max_iters", "maxiter", "iterations", "n_iter", "iters", "steps", "epochs"),
    "seconds": ("timeout", "time_limit", "max_time", "time"),
    "seed": ("random_state", "rng", "random_seed"),
    "start": ("x0", "w0", "init", "initial", "warm_start"),
    "progress": ("verbose", "disp"),
    "observe": ("observer", "monitor", "history", "track", "record"),
    "method": ("solver", "algorithm"),
    "engine": ("backend", "faults", "actors", "parts", "malicious"),
    "jobs": ("n_jobs", "workers"),
    "threads": ("n_threads", "num_threads", "n_jobs"),
    "folds": ("cv", "n_folds", "n_splits"),
    "target": ("y", "outcome", "response"),
    "strengths": ("lambdas", "alphas", "n_alphas", "lam", "lambda_", "alpha"),
    "loss": ("family", "distribution", "likelihood"),
}


_takers: dict[str, list[str]] = {}  # the functions that have an argument, by its name


def named(function: Callable[P, T]) -> Callable[P, T]:
    """The function; an argument that it does not have is refused with the one that was meant, by its name in other
    packages or nearly so, or with the functions that have it."""
    known = signature(function).parameters
    for name in known:
        _takers.setdefault(name, []).append(function.__qualname__)
    meant = {other: name for name, others in OTHER_NAMES.items() if name in known for other in others}

    @wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        for name in given:
            if name not in known:
                others = f"; leave it out: it is one of {', '.join(sorted(_takers[name]))}" if name in _takers else ""
                there = f"; it has {', '.join(known)}"
                hint = f"; here it is {meant[name]}=" if name in meant else did_you_mean(name, known) or others or there
                raise ArgumentError(f"{function.__qualname__} has no argument {name!r}{hint}")
        return function(*args, **given)

    return call


class ChecksNames:
    """A class whose constructor refuses an argument that it does not have, with the one that was meant, or what
    ``elsewhere`` says of it."""

    __slots__ = ()
    elsewhere: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *args: Any, **given: Any) -> Self:
        known = signature(cls.__init__).parameters if given else {}
        for name in given:
            if name not in known and not any(each.kind is each.VAR_KEYWORD for each in known.values()):
                said = cls.elsewhere.get(name) or near(name, [*known][1:], "it has")
                raise ArgumentError(f"{cls.__name__} has no argument {name!r}; {said}")
        return super().__new__(cls)


# ---- fields of dataclasses -------------------------------------------------------------------------------------------
@overload
def checked(check: Check) -> Any: ...
@overload
def checked(check: Check, default: T) -> T: ...
@overload
def checked(check: Check, *, default_factory: Callable[[], T]) -> T: ...
def checked(check: Check, default: Any = MISSING, default_factory: Any = MISSING) -> Any:
    """A field of a dataclass with what it may be; None may be given where it is the default."""
    return field(default=default, default_factory=default_factory, metadata={"check": check})


@lru_cache
def type_hints(kind: Any) -> dict[str, Any]:
    """The annotations of a class or function, evaluated; none where they cannot be resolved, as in a user's class
    within a function."""
    try:
        return get_type_hints(kind)
    except (NameError, TypeError, AttributeError):
        return {}


def check_fields(record: Any, error: type[GraphregError], owner: str = "") -> None:
    """Check the fields of a dataclass; the messages name the field and ``owner``, by default its class. A field that is
    declared as a bool is a switch."""
    for each_field in fields(record):
        declared = each_field.type if isinstance(each_field.type, str) else getattr(each_field.type, "__name__", "")
        check, value = each_field.metadata.get("check", SWITCHES.get(declared)), getattr(record, each_field.name)
        if check is not None and not (value is None and each_field.default is None):
            check(value, each_field.name, error, owner or type(record).__name__)


class ChecksFields(ChecksNames):
    """A dataclass that, when an object is made, also refuses fields that are not what they must be."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self, MethodError)
