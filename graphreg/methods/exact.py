"""The exact route: compiled to CVXPY, solved by a conic solver, certified by graphreg itself."""

from __future__ import annotations

from dataclasses import dataclass

from ..checks import checked, one_of, text
from ..form import Form
from ._base import AbstractMethod

GAP = 1e-7  # beyond it a second solve at tight tolerances is worth its time


@dataclass(frozen=True)
class Exact(AbstractMethod):
    """Compile to CVXPY, solve with a conic solver, certify.

    First at the solver's default tolerances; where the certificate falls short of ``min(gap, 1e-7)`` once more at
    1e-11; where it still falls short of ``gap`` in the user's units instead of the data's, and with shorter steps; at
    last some rounds of `PrimalDual` refine what the solver left, or begin anew where it only says that there is no
    point or no bound (the message says so). The best bounds of all attempts are kept.

    Parameters
    ----------
    solver : str
        Any installed CVXPY solver that takes the problem; "clarabel" by default, "scs" beside it.
    form : {"primal", "dual"}
        Which of the two problems is given to the solver.
    """

    needs = "nothing: every problem, of a size that a conic solver can take"
    sends = "nothing: all data are in one place"

    solver: str = checked(text("the name of a CVXPY solver"), "clarabel")
    form: str = checked(one_of("primal", "dual"), "primal")

    @property
    def label(self) -> str:
        return f"{self.name}({self.solver})" if self.form == "primal" else f"{self.name}({self.solver}, {self.form})"

    def missing(self, form: Form) -> tuple[str, ...]:
        del form
        return ()
