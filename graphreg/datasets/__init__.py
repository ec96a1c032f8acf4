"""Generators of problems and data."""

from .random_problems import RandomProblem as RandomProblem
from .random_problems import random_problem as random_problem
