"""The CVXPY function that a penalty was read from: how it is written for the exact route, and how it is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..base.escaping import upright
from ..base.lazy import cp
from ..base.messages import of_cvxpy
from ..errors import TermError
from ..terms import Notation
from ..terms.penalties import AbstractPenalty
from .conic import ConeProgramme, cone_programme

LONG = 100  # characters of a function of CVXPY that is printed


def plain(expression: Any) -> str:
    """An expression of CVXPY as a user would write it; empty where that is long, or CVXPY rounds what it prints."""
    said = of_cvxpy(expression).replace("%", "percent")
    return said if len(said) <= LONG and "\n" not in said else ""


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A CVXPY function of one row of k coordinates."""

    function: Callable[[Any], Any]
    k: int
    name: str
    strength: float = 1.0  # about phi(z) / ||z||

    @cached_property
    def programme(self) -> ConeProgramme:
        """The function as cones."""
        return cone_programme(self.function, self.k, self.strength)

    def written(self, Z: Any) -> Any:
        """The function at each row of the (m, k) expression Z, in CVXPY."""
        if self.programme.stacks:
            return self.programme.written(Z)
        return cp.hstack([self.function(Z[i]) for i in range(Z.shape[0])])

    @property
    def formula(self) -> str:
        """The function of z as a user would write it; its name where that is long, or CVXPY rounds what it prints."""
        return plain(self.function(cp.Variable(self.k, name="z"))) or f"{self.name}(z)"

    @property
    def notation(self) -> Notation:
        """Its name, with what CVXPY writes and what its conjugate is."""
        name, latex = self.name, upright(self.name) if len(self.name) > 1 else self.name
        latex = r"\phi" if name == "phi" else latex
        value, typeset = f"{name}(%z)", rf"{latex}(%z)"
        if (written := self.formula) != value.replace("%z", "z"):
            value += f" where {name}(z) = {written}"
            typeset += rf" \text{{ where }} {latex}(z) = {upright(written)}"
        if self.programme.homogeneous:
            polar = f"{name}^o(%u) <= %c where {name}^o(u) = max over {name}(z) <= 1 of <u, z>"
            ball = rf"{latex}^\circ(%u) \le %c \text{{ where }} {latex}^\circ(u) = \max_{{{latex}(z) \le 1}} "
            return Notation(value, "", polar, typeset, "", ball + r"\langle u, z \rangle")
        return Notation(
            value,
            f"%c {name}*(%u / %c) where {name}*(u) = max over z of <u, z> - {name}(z)",
            latex_value=typeset,
            latex_conjugate=rf"%c \, {latex}^*(%u / %c) \text{{ where }} "
            rf"{latex}^*(u) = \max_z \langle u, z \rangle - {latex}(z)",
        )


@dataclass(frozen=True, eq=False)
class AbstractReadPenalty(AbstractPenalty):
    """A penalty that a CVXPY function is on k coordinates; a part of one has no source."""

    source: FunctionSource | None = field(default=None, kw_only=True, repr=False)
    way = "in closed form, or a root per row"  # in which it is computed

    @property
    def whole(self) -> FunctionSource:
        """The function that it was read from."""
        assert self.source is not None
        return self.source

    def check(self, k: int) -> None:
        if k != self.whole.k:
            raise TermError(f"{self.called()} was read on {self.whole.k} coordinates, and the term has {k}")

    def cvxpy(self, Z: Any) -> Any:
        return self.whole.written(Z)

    def __repr__(self) -> str:
        kind, source = type(self).__name__, self.source
        if source is None:
            return kind
        parts = self.parts() or ()  # what is one of the library's own is not read, but that
        stated = bool(parts) and all(phi.statement(source.k) for _, phi in parts)
        proofs = "proofs can state it" if stated else "no proof can state it"
        return f"<{kind}: {source.formula} of {source.k} numbers, {self.way}; {proofs}>"

    def called(self) -> str:
        return self.whole.name if self.source else type(self).__name__

    @property
    def notation(self) -> Notation:
        return self.whole.notation
