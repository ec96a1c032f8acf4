"""Compiled rounds: what methods iterate on large graphs, where numba is installed (the extra ``fast``).

Without it, and on small graphs, numpy does the same: the iterates agree to rounding, and the certificate judges both.
"""

from .compiled import compiles as compiles
from .order import EdgeOrder as EdgeOrder
from .recursions import Numbers as Numbers
from .recursions import Recursion as Recursion
from .rounds import Held as Held
from .rounds import Image as Image
from .rounds import Rounds as Rounds
from .rounds import orders_of as orders_of
from .rounds import pays as pays
