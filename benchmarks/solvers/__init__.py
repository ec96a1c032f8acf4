"""The solvers, by name. The packages of rivals are imported when they run: one that is not installed is a row."""

from ._base import AbstractSolver, Answer
from .conic import DIRECT
from .cut_pursuit import CutPursuit
from .lasso import LASSOS
from .modelled import CLARABEL, MODELLED
from .own import OWN, PREFIX, Reference, as_problem, cpu_clock
from .proxtv import ProxTV
from .pyproximal import PYPROXIMAL
from .scikit_image import ScikitImage

OURS = OWN[0].name  # to which all others are compared
REFERENCE = Reference()
SOLVERS: dict[str, AbstractSolver] = {
    solver.name: solver
    for solver in (*OWN, *MODELLED, *DIRECT, ProxTV(), CutPursuit(), ScikitImage(), *LASSOS, *PYPROXIMAL)
}

__all__ = ["CLARABEL", "OURS", "PREFIX", "REFERENCE", "SOLVERS", "AbstractSolver", "Answer", "as_problem", "cpu_clock"]
