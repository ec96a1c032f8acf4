"""A kernel of lower bounds, tried beside today's: anything may propose, one small piece verifies.

`arithmetic`, `system`, `balance` and `value` are the kernel: they make a bound from prices and flows, a sparse matrix R
that says how an imbalance is taken up, and the sizes of the corrections, and believe nothing of these. `slack`,
`systems`, `plan` and `proposals` propose. ``python -m benchmarks.kernel`` compares both at the points
that solves end in.
"""
