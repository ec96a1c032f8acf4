"""Points at which rows that are 0 at an optimum are 0 to the last bit.

Where strengths are large, c_e |(Kw)_e| of what rounding leaves of a row is more than a gap. Sums of whole multiples of a
power of 2 are exact as long as they have 53 bits: with K of whole numbers, the last of each row 1 or -1 and of no other
row, as in differences of any order, w follows from its first numbers and from any multiples that K w shall be.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ...form import Form
from ...terms import Array
from ...terms.penalties import AbstractNorm
from ..kernel.system import Flows

BITS = 53  # of the largest sum of a row
INSIDE = 0.999  # of a capacity: rows whose flows are less are 0


def on_lattice(form: Form, w: Array, flows: Flows) -> Array | None:
    """A point near w at which the rows of norms are 0 whose flows are inside; None where K is not such."""
    blocks = [(e, u) for e, u in zip(form.edges, flows, strict=True) if e.map.edges is None and e.center is None]
    if not blocks or not all(isinstance(edge.penalty, AbstractNorm) for edge, _ in blocks) or not w.any():
        return None
    K = sp.csr_array(sp.vstack([edge.flat(form.d) for edge, _ in blocks], format="csr"))
    K.sort_indices()
    last, end = K.indices[K.indptr[1:] - 1], K.data[K.indptr[1:] - 1]
    if (K.data % 1.0).any() or (np.abs(end) != 1.0).any() or len(np.unique(last)) < len(last):
        return None
    unit = 2.0 ** (sum(np.frexp([np.abs(w).max(), abs(K).sum(axis=1).max()])[1]) - BITS)
    z = np.rint(K @ (w.ravel() / unit))
    inside = [edge.penalty.domain.gauge(u / edge.weight[:, None]) < INSIDE for edge, u in blocks]
    z[np.concatenate([np.repeat(zero, form.width(edge)) for zero, (edge, _) in zip(inside, blocks, strict=True)])] = 0.0
    number = np.rint(w.ravel() / unit).astype(np.int64).tolist()
    rows = zip(z.astype(np.int64).tolist(), K.indptr[:-1].tolist(), (K.indptr[1:] - 1).tolist(), strict=True)
    column, factor = K.indices.tolist(), K.data.astype(np.int64).tolist()
    each = list(rows)
    for r in np.argsort(last).tolist():
        left, begin, at = each[r]
        for k in range(begin, at):
            left -= factor[k] * number[column[k]]
        if abs(left) >= 2**53:
            return None
        number[column[at]] = factor[at] * left
    return (unit * np.array(number, dtype=float)).reshape(form.shape)
