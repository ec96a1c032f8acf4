"""Searches in graphs by scipy: indices of 32 bits, whatever those of the sparse array are."""

import numpy as np
import pytest
import scipy.sparse as sp

from graphreg.base import csgraph
from graphreg.errors import GraphError

CALLED = [name for name, each in vars(csgraph).items() if hasattr(each, "__wrapped__")]


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("kind", ["csr", "coo", "csc"])
def test_scipy_is_given_indices_of_32_bits(name, kind, monkeypatch):
    links = sp.csr_array(np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 3.0, 0.0]]))
    links.indices, links.indptr = links.indices.astype(np.int64), links.indptr.astype(np.int64)
    given, call = [], getattr(csgraph, name)
    freevars = dict(zip(call.__code__.co_freevars, call.__closure__, strict=True))
    monkeypatch.setattr(freevars["function"], "cell_contents", lambda graph, *_: given.append(graph))
    call(links.asformat(kind), 0)
    assert (given[0].indices.dtype, given[0].indptr.dtype) == (np.int32, np.int32)
    np.testing.assert_array_equal(given[0].toarray(), links.toarray())
    assert links.indices.dtype == np.int64, "the caller's own array stays as it is"


def test_all_that_is_called_is_there():
    assert len(CALLED) > 5


def test_too_large_a_graph_is_refused():
    links = sp.coo_array((np.ones(1), ([0], [1])), shape=(2**31, 2**31))
    with pytest.raises(GraphError, match=r"2147483648 nodes and 1 links is too large.* split it"):
        csgraph.connected_components(links, directed=False)
