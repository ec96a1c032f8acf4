"""Penalties and losses from functions of CVXPY: `Penalty.from_cvxpy` and `Loss.from_cvxpy`."""
