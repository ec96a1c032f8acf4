"""Penalties and losses from functions of CVXPY: `Penalty.from_cvxpy` and `Loss.from_cvxpy`."""

from .loss import from_cvxpy as loss_from_cvxpy
from .penalty import from_cvxpy as penalty_from_cvxpy
