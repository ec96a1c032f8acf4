"""The algorithms that are right: each with the kind of problem that it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .consensus import (
    consensus_admm,
    dgd,
    diging,
    exact_diffusion,
    extra,
    fed_avg,
    nids,
    pg_extra,
    ssda,
    stochastic,
)
from .splitting import chambolle_pock, condat_vu, douglas_rachford, dual_forward_backward, edge_admm

Algorithm = Callable[..., Any]

RIGHT: dict[Algorithm, str] = {
    douglas_rachford: "edges",
    edge_admm: "edges",
    condat_vu: "edges",
    chambolle_pock: "edges",
    dual_forward_backward: "edges",
    dgd: "consensus",
    extra: "consensus",
    diging: "consensus",
    nids: "consensus",
    exact_diffusion: "consensus",
    consensus_admm: "consensus",
    ssda: "consensus",
    stochastic: "consensus",
    fed_avg: "consensus",
    pg_extra: "composite",
}
