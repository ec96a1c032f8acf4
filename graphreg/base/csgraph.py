"""``scipy.sparse.csgraph`` as graphreg calls it: indices have 32 bits, since many versions of scipy take no others.

Which indices a sparse array has depends on who made it: of two that print alike one may have 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from ..errors import GraphError

LARGEST = np.iinfo(np.int32).max


def fits(matrix: Any) -> bool:
    """True where 32 bits suffice for the indices of a sparse matrix."""
    return max(*matrix.shape, matrix.nnz) < LARGEST


def narrow(matrix: sp.csr_array) -> sp.csr_array:
    """The matrix with 32-bit indices where they suffice: products are bound by memory."""
    if fits(matrix):
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def _narrowed(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(graph: Any, *args: Any, **options: Any) -> Any:
        if not sp.issparse(graph):
            return function(graph, *args, **options)
        if not fits(graph):
            raise GraphError(
                f"a graph with {graph.shape[0]} nodes and {graph.nnz} links is too large: its nodes and its links are "
                f"counted with 32 bits, up to {LARGEST}; make it smaller, or split it"
            )
        return function(narrow(sp.csr_array(graph)), *args, **options)

    return call


breadth_first_order = _narrowed(csgraph.breadth_first_order)
connected_components = _narrowed(csgraph.connected_components)
depth_first_order = _narrowed(csgraph.depth_first_order)
dijkstra = _narrowed(csgraph.dijkstra)
maximum_bipartite_matching = _narrowed(csgraph.maximum_bipartite_matching)
maximum_flow = _narrowed(csgraph.maximum_flow)
minimum_spanning_tree = _narrowed(csgraph.minimum_spanning_tree)
reverse_cuthill_mckee = _narrowed(csgraph.reverse_cuthill_mckee)
shortest_path = _narrowed(csgraph.shortest_path)
