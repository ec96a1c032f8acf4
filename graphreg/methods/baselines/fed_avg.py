"""Federated averaging: one model for all nodes, by local gradient steps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ...checks import checked, counts, positive
from ...network import AVAILABILITY
from ._averaging import AbstractAveraging
from ._servers import OneServer


@dataclass(frozen=True)
class FedAvg(OneServer, AbstractAveraging):
    """Federated averaging (McMahan et al., AISTATS 2017, Algorithm 1) of the model of `Pooled`.

    With f_i = a_i F_i, a_i the sum of the scales s_r of the samples of node i (1 for ``scale="mean"``, m_i for
    ``scale="sum"``), so that F_i is a mean loss, and p_i = a_i / sum_j a_j (without samples a_i is the sum of the
    strengths of the node's smooth penalties: the model of `Pooled` has these, too, and F_i is their mean), a round is

        w_i <- w,  then ``local_steps`` times  w_i <- w_i - eta grad F_i(w_i)        at the clients
        w   <- sum_i p_i w_i                                                          at the server

    Smooth node penalties belong to f_i. One local step is gradient descent, w <- w - eta/A grad sum_i f_i(w) with
    A = sum_j a_j, and ends at the pooled fit. With more of them and different data it does not: the limit w satisfies
    sum_i p_i (sum of the gradients along the steps of i) = 0, off the pooled fit by O(eta (local_steps - 1))
    (Charles and Konecny, 2021); the certificate then stops at that distance.

    Parameters
    ----------
    local_steps : int or mapping
        At least 1, for all or by node label: of devices that take s_i seconds for a step, in rounds of T seconds,
        ``{i: max(1, int(T // s_i))}``. Where they differ, a node's steps weigh as much as there are of them, and the
        limit moves towards the fits of the fast (Wang et al., NeurIPS 2020); that of `SCAFFOLD` does not.
    step_size : float, optional
        eta. None (default): 1/L, L the bound sum_i p_i L_i of the smoothness of the mean with one local step, the
        largest L_i with more; L_i that of F_i. Beyond 2/L a MethodWarning. One for all, learned by the server from
        its clients before the first round.
    batch : int or mapping, optional
        Each local step takes so many samples of the node (one number for all, or one by label), drawn with replacement,
        in place of all: L_i is then that of the steepest sample, and the iterates keep moving around the limit.
    availability : number, mapping, sampler or Availability, optional
        Which clients are there, see `Availability`; by default all. The mean is over those that are, with p_i divided
        by the probability that i is there. Every client hears every model, those that are away, too.

    A round sends the model down to every client and up from those that are there. A server that sends it only to those
    that are there has the same iterates, and ``ledger.by_node()["away"].sum()`` messages less than the ledger counts.

    Examples
    --------
    >>> run = problem.solve(gr.FedAvg(), gap=1e-6)  # one model for all: far from the optimum of the problem
    >>> run.own.holds(1e-6), run.certificate.relative_gap > 0.5
    (True, True)
    """

    local_steps: int | Mapping[Hashable, int] = checked(counts, 1)
    step_size: float | None = checked(positive, None)
    batch: int | Mapping[Hashable, int] | None = checked(counts | None, None)
    availability: Any = checked(AVAILABILITY, None)
