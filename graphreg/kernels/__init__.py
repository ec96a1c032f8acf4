"""Compiled rounds: what methods iterate on large graphs, where numba is installed (the extra ``fast``).

Without it, and on small graphs, numpy does the same: the iterates agree to rounding, and the certificate judges both.
"""

from .compiled import compiles as compiles
from .order import Orders as Orders
from .order import near_orders as near_orders
from .order import orders_of as orders_of
from .packed import packed_inverses as packed_inverses
from .packed import packed_products as packed_products
from .passes import EdgePasses as EdgePasses
from .passes import group_means as group_means
from .passes import group_numbers as group_numbers
from .passes import quadratic_minimisers as quadratic_minimisers
from .passes import quadratic_total as quadratic_total
from .pulls import edge_pulls as edge_pulls
from .recursions import Numbers as Numbers
from .recursions import Recursion as Recursion
from .rounds import SOME as SOME
from .rounds import Held as Held
from .rounds import Image as Image
from .rounds import Rest as Rest
from .rounds import Rounds as Rounds
from .rounds import compiled_from as compiled_from
from .rounds import pays as pays
from .rounds import worthwhile as worthwhile
