"""Compiled rounds: what methods iterate on large graphs, where numba is installed (the extra ``fast``).

Without it, and on small graphs, numpy does the same. The package is one of those `graphreg.network.Kernels`.
"""

from .order import near_orders as near_orders
from .order import orders_of as orders_of
from .packed import packed_products as packed_products
from .packed import packed_spreads as packed_spreads
from .passes import edge_passes as edge_passes
from .passes import group_means as group_means
from .passes import group_numbers as group_numbers
from .rounds import Rounds as Rounds

rounds_of = Rounds.of
