"""What somebody else made of the problem in CVXPY, read back and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..certificate import Certifier, levelled
from ..compiling import conic
from ..errors import FailedError, ModelError
from ..running import Solution, contradicted

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, repr=False)
class Compiled:
    """A problem compiled to CVXPY.

    Attributes
    ----------
    cvxpy : cvxpy.Problem
        To be solved by whoever likes; ``read()`` then certifies what was found.
    w : cvxpy.Variable
        The (n, d) parameters, latent nodes last (None in the dual form).
    z : list
        One (m, k) variable per edge block: the differences in the primal form, the flows in the dual form.
    """

    cvxpy: cp.Problem
    w: cp.Variable | None
    z: list[cp.Variable]
    conic: conic.ConicProblem

    def __reduce__(self) -> tuple[Any, ...]:
        raise ModelError("what is compiled can be neither copied nor sent; send the problem, and compile it there")

    def __repr__(self) -> str:
        return f"<Compiled: a problem of CVXPY, status {self.cvxpy.status}; .cvxpy.solve(...), then .read()>"

    def read(self) -> Solution:
        """The answer that stands in the CVXPY problem, certified by graphreg's own code.

        Returns
        -------
        Solution

        Raises
        ------
        FailedError
            Where the CVXPY problem has no values: it was not solved, or not successfully. And where a term of the
            user's is found to break a law that bounds rest on, which the message names.

        Examples
        --------
        >>> compiled = problem.compile()
        >>> _ = compiled.cvxpy.solve(solver="CLARABEL")
        >>> compiled.read().certificate.holds(1e-6)
        True
        """
        found = self.conic.read_back()
        if found is None:
            raise FailedError("the CVXPY problem holds no answer; call .cvxpy.solve(...) first")
        certifier = Certifier(self.conic.form.frozen())
        certifier.spot_checks.begin()
        certificate = levelled(certifier.certify(found[0], found[1].flows, found[1].prices, 1e-6), 1e-6)
        status = "certified" if certificate.holds(1e-6) else "no_certificate"
        message = f"Read from CVXPY, whose solver said {self.cvxpy.status!r}."
        if certificate.contradiction:
            status, message = "failed", contradicted(certificate)
        solution = Solution(certificate.form, certificate, status, message, "CVXPY")
        if status == "failed":
            raise FailedError(message, solution)
        return solution
