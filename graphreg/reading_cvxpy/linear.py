"""An affine atom of CVXPY as matrices, found by what it does to unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..terms import Array


def affine_map(atom: Any) -> tuple[Array, list[Array | None]]:
    """(size,) and a (size, size of the argument) matrix for each argument that is not constant, flat in CVXPY's order;
    None for those that are."""
    fixed = [arg.value if arg.is_constant() else np.zeros(arg.shape) for arg in atom.args]
    base = dense(atom.numeric(fixed)).ravel(order="F")
    matrices: list[Array | None] = []
    for i, arg in enumerate(atom.args):
        if arg.is_constant():
            matrices.append(None)
            continue
        units = np.eye(arg.size).reshape(arg.size, -1)
        columns = [
            dense(atom.numeric([*fixed[:i], unit.reshape(arg.shape, order="F"), *fixed[i + 1 :]])).ravel(order="F")
            for unit in units
        ]
        matrices.append(np.array(columns).T - base[:, None])
    return base, matrices


def dense(value: Any) -> Array:
    """A value of CVXPY as an array of floats."""
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)
