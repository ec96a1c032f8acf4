"""The term of a form that breaks CVXPY's rules, once CVXPY has refused the problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..base.escaping import visible
from ..base.lazy import cp
from ..base.messages import PRODUCT, of_cvxpy
from ..errors import TermError
from ..form import Form

ROWS = 2  # on which a term is written once more: its parts are printed
LONGEST = 300  # of what is printed of a part


def broken_rule(form: Form, error: Exception) -> str:
    """The term whose expression is not convex by CVXPY's rules, and the part of it; what CVXPY says where each term by
    itself is."""
    for where, write in _terms(form):
        try:
            written = write()
        except TermError:  # a term without a conjugate for CVXPY
            continue
        for part in written if isinstance(written, (list, tuple)) else [written]:
            if isinstance(part, cp.Constraint):
                said = f"its constraint {part} does not follow the rules of disciplined convex programming"
                wrong = not part.is_dcp()
            else:
                wrong = not part.is_convex()
                said = not_convex(part) if wrong else ""
            if wrong:
                return (
                    f"a term is not convex by CVXPY's rules, {where}: {visible(said, LONGEST)}; write it with convex "
                    "atoms (https://www.cvxpy.org/tutorial/dcp)"
                )
    return f"a term is not convex by CVXPY's rules: {' '.join(str(error).split())}"


def _terms(form: Form) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every term, written on a few rows, and what it is called."""
    for edge in form.edges:
        shape = (min(len(edge.tail), ROWS), form.width(edge))
        z, u, phi = cp.Variable(shape, name="z"), cp.Variable(shape, name="u"), edge.penalty
        yield f"cvxpy of {phi.called()} in {edge.name}", lambda phi=phi, z=z: phi.cvxpy(z)
        yield f"cvxpy_conjugate of {phi.called()} in {edge.name}", lambda phi=phi, u=u: phi.cvxpy_conjugate(u)
    for block in form.samples:
        y, shape = block.y[:ROWS], block.offset[:ROWS].shape
        x, a, loss = cp.Variable(shape, name="x"), cp.Variable(shape, name="a"), block.loss
        yield f"cvxpy of {loss.called()}", lambda loss=loss, x=x, y=y: loss.cvxpy(x, y)
        yield f"cvxpy_conjugate of {loss.called()}", lambda loss=loss, a=a, y=y: loss.cvxpy_conjugate(a, y)


def not_convex(expression: Any) -> str:
    """The smallest part that breaks convexity, and what CVXPY's rules say of it."""
    guilty = _guilty(expression)
    if type(guilty).__name__ in ("MulExpression", "multiply"):  # those with a constant factor follow the rules
        one, two = map(of_cvxpy, guilty.args)
        known = f"is cp.square({one}), which the rules know by that name"
        return f"{of_cvxpy(guilty)} {known if one == two else PRODUCT}"
    return f"{of_cvxpy(guilty)} is {'concave' if guilty.is_concave() else 'neither convex nor concave by its rules'}"


def _guilty(expression: Any) -> Any:
    while True:
        worse = [part for part in expression.args if not part.is_dcp()]
        if not worse and isinstance(expression, cp.AddExpression):
            worse = [part for part in expression.args if not part.is_convex()]
        if not worse:
            return expression
        expression = worse[0]
