"""The notation of a form: the problem, its dual and its optimality conditions, as text and LaTeX."""

from .text import Written as Written
from .text import dual as dual
from .text import kkt as kkt
from .text import primal as primal
from .writing import Math as Math
from .writing import Row as Row
from .writing import listed as listed
