"""FedProx: federated averaging whose clients are pulled to the server's model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ...checks import checked, counts, nonnegative, positive
from ...form import Form
from ...network import AVAILABILITY
from ._averaging import AbstractAveraging
from ._servers import OneServer


@dataclass(frozen=True)
class FedProx(OneServer, AbstractAveraging):
    """FedProx (Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, MLSys 2020, Algorithm 2) of the model of `Pooled`.

    Clients minimise, not exactly, what (2) of the paper calls h_i, from the server's model w:

        h_i(w_i; w) = F_i(w_i) + mu/2 ||w_i - w||^2,      w_i <- w_i - eta (grad F_i(w_i) + mu (w_i - w))

    ``local_steps`` times from w_i = w; the mean, F_i and all else are as in `FedAvg`, which is mu = 0. As the pull is 0
    at w, one local step is gradient descent, and ends at the pooled fit. More of them do not, however large mu: with
    many, w goes on as gradient descent with the step 1/mu on the Moreau envelopes of the F_i, and the limit is their
    best common model, that of `PFedMe` with lam_i = mu a_i (Pathak and Wainwright, FedSplit, NeurIPS 2020). The larger
    mu, the nearer the limit is to the pooled fit, by O(1/mu), and the slower the way.

    In the paper (Theorem 4) every round decreases the mean of the F_i in expectation where the clients' gradients are
    at most B times as large as that of the mean; at the pooled fit, where the latter is 0, no such B is finite unless
    all F_i are minimised there, so that nothing is said of the limit.

    Parameters
    ----------
    mu : float
        In units of the curvature of the F_i. Required: None (default) is refused by `solve`.
    local_steps : int or mapping
        5 by default.
    step_size, batch, availability
        As for `FedAvg`; the default step is 1 / (mu + the largest L_i), with one local step 1/L.

    Examples
    --------
    >>> run = problem.solve(gr.FedProx(mu=0.1), gap=1e-6)  # one model for all: far from the optimum of the problem
    >>> run.certificate.relative_gap > 0.5
    True
    """

    needs = (
        "a pull mu; smooth losses (a bound of their curvature or a given step), smooth node penalties; it drops the "
        "edges between nodes"
    )

    mu: float | None = checked(nonnegative, None)  # pyright: ignore[reportIncompatibleVariableOverride]
    local_steps: int | Mapping[Hashable, int] = checked(counts, 5)
    step_size: float | None = checked(positive, None)
    batch: int | Mapping[Hashable, int] | None = checked(counts | None, None)
    availability: Any = checked(AVAILABILITY, None)

    def missing(self, form: Form) -> tuple[str, ...]:
        lacking = ["the pull to the server's model is to be chosen: give FedProx(mu=...)"] if self.mu is None else []
        return (*lacking, *super().missing(form))
