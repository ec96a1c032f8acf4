"""The calculus of terms: positive strengths, and models as the sums that they are.

``strength * term`` scales, ``+`` adds, ``sum([...])`` works. A strength is a positive number or a `Parameter`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.display import Brief, Html, Shown, inside, sentence, table, title
from ..base.escaping import visible
from ..base.messages import shown
from ..base.shortcuts import shortcut
from ..checks import Check, ChecksNames, is_number
from ..errors import GraphregError, TermError

if TYPE_CHECKING:
    from ..inputs import Labels
    from .blocks import Lowered
    from .records import Space


def positive(value: Any, what: str, wanted: str = "a positive number", remedy: str = "") -> float:
    """``value`` as a float, refused with a message that names ``what`` unless it is positive and finite."""
    if not is_number(value):
        raise TermError(f"{what} must be {wanted}, got {shown(value)}")
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise TermError(f"{what} must be positive and finite, got {number}{remedy}")
    return number


NAME = Check("text that is not empty", lambda given: isinstance(given, str) and given.strip() != "")
SWITCH_OFF = "; leave the term out to switch it off"


class Parameter(ChecksNames):
    """A positive number that may change between solves, so that what was built is re-used.

    Parameters
    ----------
    value : float
        Positive and finite. Assign ``parameter.value = ...`` to change it.
    name : str, optional
        How it is printed.

    Examples
    --------
    >>> lam = gr.Parameter(0.1, name="lam")
    >>> problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2()))
    >>> lam.value = 2.0
    >>> problem.solve().clusters().count
    1
    """

    __slots__ = ("__weakref__", "_value", "name")
    __array_ufunc__ = None  # numpy scalars leave `number * parameter` to __rmul__

    def __init__(self, value: float, name: str = "strength") -> None:
        self.name = NAME(name, "name", TermError, "Parameter")
        self.value = value

    @property
    def value(self) -> float:
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        self._value = positive(value, f"the value of the parameter {self.name!r}", remedy=SWITCH_OFF)

    def __mul__(self, other: Any) -> Strength | Model:
        return Strength(1.0, self) * other

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Strength:
        return Strength(1.0, self) / number

    def __repr__(self) -> str:
        return f"Parameter({self._value:g}, name={self.name!r})"


@dataclass(frozen=True)
class Strength:
    """``factor`` times at most one `Parameter`; positive."""

    factor: float = 1.0
    parameter: Parameter | None = None

    __array_ufunc__ = None

    @staticmethod
    def of(value: Any, what: str = "a strength") -> Strength:
        if isinstance(value, Strength):
            return value
        if isinstance(value, Parameter):
            return Strength(1.0, value)
        return Strength(positive(value, what, "a positive number or a Parameter", SWITCH_OFF))

    def __float__(self) -> float:
        if self.parameter is None:
            return self.factor
        return positive(self.factor * self.parameter.value, f"the strength {self.text()}")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (AbstractTerm, Model)):
            return other * self
        other = Strength.of(other)
        if self.parameter and other.parameter:
            raise TermError(
                f"the product of the parameters {self.parameter.name!r} and {other.parameter.name!r} is refused: "
                "a strength is a number times at most one Parameter"
            )
        factor = positive(self.factor * other.factor, f"the product of the strengths {self.text()} and {other.text()}")
        return Strength(factor, self.parameter or other.parameter)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Strength:
        divisor = positive(number, "the divisor of a strength")
        return Strength(positive(self.factor / divisor, f"the strength {self.text()} / {divisor:g}"), self.parameter)

    def text(self) -> str:
        """'0.1', 'lam', '2 lam'."""
        if self.parameter is None:
            return f"{self.factor:.6g}"
        name = visible(self.parameter.name)
        return name if self.factor == 1.0 else f"{self.factor:.6g} {name}"


class _Summand(Shown):
    """The common part of terms and models: ``+``, ``strength *`` and ``/ number``, all of which give models."""

    __array_ufunc__ = None
    _instead: ClassVar[Mapping[str, str]] = {"solve": "gr.Problem(model).solve()"}

    def __add__(self, other: Any) -> Model:
        if is_number(other) and other == 0:  # the start of sum([...])
            return Model.of(self)
        return Model(Model.of(self).terms + Model.of(other).terms)

    def __radd__(self, other: Any) -> Model:
        return self + other if isinstance(other, Real) else Model.of(other) + self

    def __mul__(self, strength: Any) -> Model:
        if isinstance(strength, _Summand):
            raise TermError("two terms were multiplied; a model is a sum of terms, each scaled by a positive strength")
        scale = Strength.of(strength)
        return Model(tuple((scale * inner, term) for inner, term in Model.of(self).terms))

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Model:
        return self * (1.0 / positive(number, "the divisor of a term"))

    def __neg__(self, other: Any = None) -> Model:
        raise TermError("a term cannot be subtracted or negated: a model is a sum of terms with positive strengths")

    __sub__ = __rsub__ = __neg__

    def _html(self) -> Iterable[Html]:
        model = Model.of(self)
        yield title(f"{type(self).__name__}: {len(model.terms)} term{'s' if len(model.terms) > 1 else ''}")
        yield table(("strength", "term"), [(strength.text(), repr(term)) for strength, term in model.terms])
        try:
            yield inside(shortcut("Model.formula")(model))
        except GraphregError as error:  # a part of a model, that is no problem by itself
            yield sentence(f"no problem yet: {error}", quiet=True)


class AbstractTerm(ChecksNames, Brief, _Summand):
    """Something that can stand in a model: a loss on the nodes, or a penalty on edges."""

    closed = True  # where only such terms name nodes, data at others are refused
    leads: bool = True  # its nodes come before those of the data

    @abstractmethod
    def lower(self, space: Space, strength: Strength) -> Lowered:
        """The term as samples and edges of the canonical form, over the nodes and features of ``space``."""

    def labels(self) -> Labels:
        """The labels of the nodes that the term brings into the problem."""
        return ()

    def takes_strength(self) -> bool:
        """True where a strength other than 1 may stand before the term: not before a constraint."""
        return True


@dataclass(frozen=True, repr=False)
class Model(_Summand):
    """A sum of scaled terms, in the order in which they were written.

    Examples
    --------
    >>> model = gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2())
    >>> [(strength.text(), type(term).__name__) for strength, term in model.terms]
    [('1', 'SquaredLoss'), ('0.1', 'TotalVariation')]
    """

    terms: tuple[tuple[Strength, AbstractTerm], ...]

    def __repr__(self) -> str:
        each = [("" if s == Strength() else f"{s.text()} * ") + repr(term) for s, term in self.terms]
        return f"Model: {' + '.join(each)}"

    @staticmethod
    def of(value: Any) -> Model:
        if isinstance(value, Model):
            return value
        if isinstance(value, AbstractTerm):
            return Model(((Strength(), value),))
        hint = ""
        if isinstance(value, type):
            hint = f"; write {value.__name__}(...)"
        elif isinstance(value, (list, tuple)):
            value, hint = f"a {type(value).__name__}", "; write sum([...])"
        elif hasattr(value, "model"):
            value, hint = f"a {type(value).__name__}", "; its terms are problem.model.terms"
        elif hasattr(value, "across"):
            hint = "; call a penalty on rows, as in gr.L1()(rows)"
        elif isinstance(value, bool):
            hint = "; an equation of rows is gr.Zero()(rows - b)"
        raise TermError(f"a model is a sum of terms (losses, TotalVariation, NodePenalty, ...), got {value}{hint}")
