"""Wild problems: data that no solver likes, for tests and studies."""

from .problems import WILD as WILD
from .problems import WildProblem as WildProblem
from .problems import wild_problem as wild_problem
