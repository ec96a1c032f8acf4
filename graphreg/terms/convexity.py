"""What of a CVXPY expression its rules do not show to be convex."""

from __future__ import annotations

from typing import Any

from ..base.lazy import cp


def not_convex(expression: Any) -> str:
    """The smallest part that breaks convexity, and what CVXPY's rules say of it."""
    guilty = _guilty(expression)
    return f"{guilty} is {'concave' if guilty.is_concave() else 'neither convex nor concave by its rules'}"


def _guilty(expression: Any) -> Any:
    while True:
        worse = [part for part in expression.args if not part.is_dcp()]
        if not worse and isinstance(expression, cp.AddExpression):
            worse = [part for part in expression.args if not part.is_convex()]
        if not worse:
            return expression
        expression = worse[0]
