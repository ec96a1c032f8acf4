"""The nodes' half of a round: w+ = prox of tau f at w - tau K'u, with 2 w+ - w, which goes across the edges, and w
relaxed. For losses f_i = 1/2 w'H_i w - <h_i, w> with H_i = V diag(values) V'.

All arrays are flat. A node of the list ``nodes`` stands at ``nodes[r]`` in w, and at r in what its loss has.
"""

from __future__ import annotations

from ..compiled import Kernel
from ..terms import Array


def mean_round(width: int, whole: int) -> Kernel:
    """For H_i = mass_i I and 1/tau_i = degree_i / s; of all nodes in their order where ``whole``."""

    def kernel(  # noqa: PLR0913, PLR0917 - all that it reads and writes
        nodes: Array,
        mass: Array,
        h: Array,
        degree: Array,
        s: float,
        pull: Array,
        w: Array,
        rho: float,
        hat: Array,
        ahead: Array,
        new: Array,
        d: int,
    ) -> None:
        end = width if width else d
        for r in range(nodes.size):
            i = r if whole else nodes[r]
            weight = degree[i] / s
            inverse = 1.0 / (weight + mass[r])
            for k in range(end):
                old = w[i * end + k]
                x = (weight * old - pull[i * end + k] + h[r * end + k]) * inverse
                hat[i * end + k] = x
                ahead[i * end + k] = 2.0 * x - old
                new[i * end + k] = old + rho * (x - old)

    return kernel


def quadratic_round(width: int, rank: int) -> Kernel:
    """For h_i = V target: w+ - v = V (target - values V'v) / (values + 1/tau) at v = w - tau K'u, free of cancellation.

    ``work`` is room for as many numbers as V has columns."""

    def kernel(  # noqa: PLR0913, PLR0917 - all that it reads and writes
        nodes: Array,
        V: Array,
        values: Array,
        target: Array,
        degree: Array,
        s: float,
        pull: Array,
        w: Array,
        rho: float,
        work: Array,
        hat: Array,
        ahead: Array,
        new: Array,
        d: int,
    ) -> None:
        end = width if width else d
        columns = rank if rank else work.size
        for r in range(nodes.size):
            at, of, weight = nodes[r] * end, r * columns, degree[nodes[r]] / s
            tau = 1.0 / weight
            for k in range(end):
                hat[at + k] = w[at + k] - tau * pull[at + k]
            for q in range(columns):
                work[q] = 0.0
            for k in range(end):
                v, row = hat[at + k], of * end + k * columns
                for q in range(columns):
                    work[q] += v * V[row + q]
            for q in range(columns):
                work[q] = (target[of + q] - values[of + q] * work[q]) / (values[of + q] + weight)
            for k in range(end):
                total, row = 0.0, of * end + k * columns
                for q in range(columns):
                    total += V[row + q] * work[q]
                hat[at + k] += total
            for k in range(end):
                ahead[at + k] = 2.0 * hat[at + k] - w[at + k]
                new[at + k] = w[at + k] + rho * (hat[at + k] - w[at + k])

    return kernel


def relaxed(rho: float, w: Array, hat: Array, ahead: Array, new: Array) -> None:
    """What follows from w+ that is known already."""
    for i in range(w.size):
        ahead[i] = 2.0 * hat[i] - w[i]
        new[i] = w[i] + rho * (hat[i] - w[i])


def node_way(width: int) -> Kernel:
    """sum_i degree_i ||w_i - other_i||^2."""

    def kernel(degree: Array, w: Array, other: Array, d: int) -> float:
        end, total = width if width else d, 0.0
        for i in range(degree.size):
            size = 0.0
            for k in range(end):
                size += (w[i * end + k] - other[i * end + k]) ** 2
            total += degree[i] * size
        return total

    return kernel
