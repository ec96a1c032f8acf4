"""What a look at flows adds up, in passes that write nothing: over edges with a norm, and over quadratic nodes.

All arrays are flat: coordinate k of row i stands at i d + k. A flow outside of its capacity c = strength base counts as
the nearest one inside.
"""

from __future__ import annotations

import math

from ..terms import Array
from .compiled import Kernel
from .edges import BALL, TINY


def clipped_pull(width: int, kind: int, ground: int) -> Kernel:
    """K'u is added to ``pull``."""

    def kernel(tail: Array, head: Array, base: Array, strength: float, u: Array, pull: Array, d: int) -> None:
        end = width if width else d
        for e in range(tail.size):
            c, i, at = strength * base[e], tail[e] * end, e * end
            j = 0 if ground else head[e] * end
            factor = 1.0
            if kind == BALL:
                size = 0.0
                for k in range(end):
                    size += u[at + k] ** 2
                factor = c / math.sqrt(max(size, c * c, TINY))
            for k in range(end):
                v = factor * u[at + k] if kind == BALL else min(max(u[at + k], -c), c)
                pull[i + k] += v
                if not ground:
                    pull[j + k] -= v

    return kernel


def norm_residuals(width: int, kind: int, ground: int, centred: int) -> Kernel:
    """sum c ||z_e||, and the sum of c ||z_e|| - <u_e, z_e>, z = Kw - center."""

    def kernel(
        tail: Array, head: Array, base: Array, strength: float, center: Array, u: Array, w: Array, d: int
    ) -> tuple[float, float]:
        end = width if width else d
        value, residual = 0.0, 0.0
        for e in range(tail.size):
            c, i, at = strength * base[e], tail[e] * end, e * end
            j = 0 if ground else head[e] * end
            length, size, along = 0.0, 0.0, 0.0
            for k in range(end):
                z = w[i + k] if ground else w[i + k] - w[j + k]
                if centred:
                    z -= center[at + k]
                if kind == BALL:
                    length += z * z
                    size += u[at + k] ** 2
                    along += u[at + k] * z
                else:
                    length += abs(z)
                    along += min(max(u[at + k], -c), c) * z
            if kind == BALL:
                length = math.sqrt(length)
                along *= c / math.sqrt(max(size, c * c, TINY))
            value += c * length
            residual += c * length - along
        return value, residual

    return kernel


def minimised(width: int, full: int) -> Kernel:
    """center - H^-1 g is written to ``at``, for inverses (n, d, d) where ``full``, else for their diagonals (n, d)."""

    def kernel(inverse: Array, center: Array, g: Array, at: Array, d: int) -> None:
        end = width if width else d
        for i in range(0, g.size, end):
            for k in range(end):
                step = 0.0
                if full:
                    for q in range(end):
                        step += inverse[(i + k) * end + q] * g[i + q]
                else:
                    step = inverse[i + k] * g[i + k]
                at[i + k] = center[i + k] - step

    return kernel


def squares(width: int, full: int) -> Kernel:
    """sum_i v_i'H_i v_i, v = a - b."""

    def kernel(H: Array, a: Array, b: Array, d: int) -> float:
        end, total = width if width else d, 0.0
        for i in range(0, a.size, end):
            for k in range(end):
                v, row = a[i + k] - b[i + k], 0.0
                if full:
                    for q in range(end):
                        row += H[(i + k) * end + q] * (a[i + q] - b[i + q])
                else:
                    row = H[i + k] * v
                total += v * row
        return total

    return kernel
