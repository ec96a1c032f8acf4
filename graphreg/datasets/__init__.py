"""Generators of problems and data."""

from .random_problems import RandomProblem as RandomProblem
from .random_problems import random_problem as random_problem
from .wild_problems import WildProblem as WildProblem
from .wild_problems import wild_problem as wild_problem
