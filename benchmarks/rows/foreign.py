"""Numbers of other programs beside ours: the same data, their answer in our objective, and our proved lower bound.

Those of R stand in ``from_r.json``, which ``Rscript benchmarks/rows/foreign.R`` writes; what is not installed here
(skimage, prox_tv, scikit-learn, statsmodels) is left out in a line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import graphreg as gr
from graphreg.datasets.plain import Array

from .settings import means

w, GAP, SIDE = gr.w, 1e-9, 48
FROM_R = Path(__file__).with_name("from_r.json")


@dataclass(frozen=True)
class Beside:
    """A model and what another program answers, by node."""

    what: str
    program: str
    model: Any
    theirs: Mapping[Hashable, Any]


def study_foreign() -> pd.DataFrame:
    """How far their answer lies above our proved lower bound, relative to the objective ("above": what is negative
    would refute our bound), our own certified gap, and the largest difference of parameters over the largest one."""
    return pd.DataFrame([judged(each) for each in besides()])


def besides() -> Iterator[Beside]:
    """Every row of the table whose program is installed."""
    for make in (from_r, *INSTALLED):
        try:
            yield from make()
        except ImportError as error:
            print(f"{make.__name__} is left out: {error}")


def judged(each: Beside) -> dict[str, Any]:
    """A row of the table."""
    problem, began = gr.Problem(each.model), time.process_time()
    answer = problem.solve(gap=GAP, progress=False, seconds=60.0, on_failure="return")
    seconds, bounds = time.process_time() - began, answer.certificate
    theirs = np.array([np.ravel(each.theirs[label]) for label in answer.labels])
    scale = max(abs(bounds.primal), abs(bounds.dual))
    return {
        "what": each.what,
        "program": each.program,
        "nodes": len(theirs),
        "objective": answer.objective,
        "gap": bounds.relative_gap,
        "above": (problem.value(theirs) - bounds.dual) / scale,
        "apart": abs(theirs - answer.coef).max() / abs(theirs).max(),
        "status": answer.status,
        "seconds": seconds,
    }


# ---- R ---------------------------------------------------------------------------------------------------------------
def from_r() -> Iterator[Beside]:
    """glmgen, genlasso, lme4 and quantreg, as stored."""
    read = json.loads(FROM_R.read_text())
    names = {name: f"{name} {number}" for name, number in read["versions"].items()}
    yield from _nile(read["nile"], names)
    yield from _mcycle(read["mcycle"], names)
    yield from _volcano(read["volcano"], names)
    yield _penicillin(read["penicillin"], names)


def _nile(read: Any, names: Mapping[str, str]) -> Iterator[Beside]:
    y = np.array(read["y"], dtype=float)
    for fit in read["fits"]:
        model = means(y) + fit["strength"] * gr.L1()(w.along(range(len(y)), fit["order"] + 1))
        for program in ("genlasso", "glmgen"):
            what = f"trend filtering of order {fit['order']}, the Nile's flow"
            yield Beside(what, names[program], model, dict(enumerate(fit[program])))


def _mcycle(read: Any, names: Mapping[str, str]) -> Iterator[Beside]:
    at, y = read["at"], np.array(read["means"])
    for fit in read["uneven"]:
        order, first = fit["order"], fit["first"]
        rows = w.along(at, order + 1, at=at)
        factor = _first(rows, len(at)) / first[0]  # of their differences, which are not divided by all factors
        model = means(y, at) + fit["strength"] / factor * gr.L1()(rows)
        what = f"trend filtering of order {order} at uneven times, a motorcycle accident"
        yield Beside(what, names["genlasso"], model, dict(zip(at, fit["genlasso"], strict=True)))
    samples = gr.NodeData.from_arrays(np.ones((len(read["times"]), 1)), read["accel"], read["times"])
    for fit in read["rqss"]:
        loss = gr.QuantileLoss(samples, tau=fit["tau"], scale="sum")
        model = loss + fit["lambda"] / 2 * gr.L1()(w.along(at, 2, at=at))
        what = f"quantile trend filtering, tau = {fit['tau']}, the same"
        yield Beside(what, names["quantreg"] + ", rqss", model, dict(zip(at, fit["fit"], strict=True)))


def _first(rows: Any, n: int) -> float:
    """The first number of the first row of n nodes."""
    block = gr.Problem(means(np.zeros(n), rows.path) + gr.L1()(rows)).form.edges[0]
    return float(block.map.flat(1)[[0], [0]][0])


def _volcano(read: Any, names: Mapping[str, str]) -> Iterator[Beside]:
    y = np.array(read["heights"], dtype=float)
    grid = nx.Graph((i - 1, j - 1) for i, j in read["edges"])
    for fit in [{"order": 0, **read["fused"]}, *read["fits"]]:
        model = means(y) + fit["strength"] * gr.L1()(w.across(grid, fit["order"] + 1))
        what = f"graph trend filtering of order {fit['order']} (Wang et al.), heights of a volcano"
        for how in ("qr", "svd")[: len(fit) - 2]:  # its default, and what it advises where D has not full row rank
            yield Beside(what, f"{names['genlasso']}, {how}", model, dict(enumerate(fit[how])))


def _penicillin(read: Any, names: Mapping[str, str]) -> Beside:
    of_plates, of_samples, noise = read["variances"]
    plates, samples = [f"plate {k}" for k in read["plates"]], [f"sample {k}" for k in read["samples"]]
    both = w.at([f"plate {k}" for k in read["plate"]]) + w.at([f"sample {k}" for k in read["sample"]]) + w.at("mean")
    model = gr.SquaredLoss(both, read["diameter"]) + noise / of_plates * gr.SquaredL2()(w.at(plates))
    model = model + noise / of_samples * gr.SquaredL2()(w.at(samples))
    effects = dict(zip([*plates, *samples], [*read["plates"].values(), *read["samples"].values()], strict=True))
    return Beside("crossed effects, Penicillin", names["lme4"], model, {**effects, "mean": read["mean"]})


# ---- Python ----------------------------------------------------------------------------------------------------------
def scikit_learn() -> Iterator[Beside]:
    from sklearn.datasets import load_diabetes, load_linnerud
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import MultiTaskLasso

    program = f"scikit-learn {version('scikit-learn')}"
    X, y = load_diabetes(return_X_y=True)
    bmi = X[:, 2].tolist()
    levels = sorted(set(bmi))
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y, bmi), scale="sum")
    theirs = IsotonicRegression().fit(bmi, y).predict(levels)
    model = loss + gr.NonNegative()(w.along(levels))
    yield Beside("isotonic regression, diabetes", program, model, dict(zip(levels, theirs, strict=True)))

    X, Y = (((A - A.mean(axis=0)) / A.std(axis=0)) for A in load_linnerud(return_X_y=True))
    (m, p), q, alpha = X.shape, Y.shape[1], 0.1
    fit = MultiTaskLasso(alpha=alpha, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(X, Y)
    data = gr.NodeData.from_arrays(np.tile(X, (q, 1)), Y.T.ravel(), np.repeat(range(q), m))
    groups = sum(gr.L2()(w.at(features=[f"x{j}"]).grouped(lambda _: "all targets")) for j in range(p))
    model = gr.SquaredLoss(data, scale=1.0 / m) + alpha * groups
    yield Beside("multi-task lasso, Linnerud", program, model, dict(enumerate(fit.coef_)))


def _picture() -> tuple[Array, nx.DiGraph]:
    from sklearn.datasets import load_sample_image

    image = load_sample_image("china.jpg")[::6, ::6].mean(axis=2)[:SIDE, :SIDE] / 255.0
    pixels = nx.grid_2d_graph(*image.shape, create_using=nx.DiGraph)
    pixels.remove_edges_from([(a, b) for a, b in pixels.edges if b < a])
    return image, pixels


def _of_pixels(x: Array) -> dict[Hashable, float]:
    return dict(np.ndenumerate(x))


def scikit_image() -> Iterator[Beside]:
    from skimage.restoration import denoise_tv_chambolle

    image, pixels = _picture()
    fit = means(image.ravel(), [*np.ndindex(image.shape)])
    model = fit + 0.1 * gr.L2()(w.across(pixels).grouped(lambda arrow: arrow[0]))
    for rounds in (200, 20_000):
        theirs = denoise_tv_chambolle(image, weight=0.1, eps=0.0, max_num_iter=rounds)
        program = f"scikit-image {version('scikit-image')}, {rounds} rounds"
        yield Beside("isotropic total variation, a photograph", program, model, _of_pixels(theirs))


def prox_tv() -> Iterator[Beside]:
    import prox_tv as peer

    image, pixels = _picture()
    fit = means(image.ravel(), [*np.ndindex(image.shape)])
    model = fit + 0.1 * gr.L1()(w.across(pixels.to_undirected()))
    theirs = peer.tv1_2d(image, 0.1, n_threads=1, max_iters=1000, method="kolmogorov")
    yield Beside("anisotropic total variation, the same", f"prox_tv {version('prox_tv')}", model, _of_pixels(theirs))


def statsmodels() -> Iterator[Beside]:
    from statsmodels.datasets import macrodata
    from statsmodels.tsa.filters.hp_filter import hpfilter

    y = macrodata.load_pandas().data["realgdp"].to_numpy()
    _, theirs = hpfilter(y, lamb=1600.0)
    model = means(y) + 1600.0 * gr.SquaredL2()(w.along(range(len(y)), 2))
    program = f"statsmodels {version('statsmodels')}"
    yield Beside("Hodrick and Prescott's filter, US product", program, model, dict(enumerate(theirs)))


def networkx() -> Iterator[Beside]:
    """networkx gives labels, and the system that it iterates on gives values, whose signs must be these labels."""
    club, known = nx.karate_club_graph(), {0: 1.0, 33: -1.0}
    nx.set_node_attributes(club, {i: y > 0 for i, y in known.items()}, "label")
    labels = nx.node_classification.harmonic_function(club, max_iter=10_000)
    inside, rim = [i for i in club if i not in known], [*known]
    L = sp.csc_array(nx.laplacian_matrix(club).astype(float))
    values = sla.spsolve(L[inside][:, inside], -(L[inside][:, rim] @ np.array([*known.values()])))
    theirs = {**known, **dict(zip(inside, values.tolist(), strict=True))}
    same = sum((theirs[i] > 0) == label for i, label in zip(club, labels, strict=True))
    model = means(np.array([1.0]), [0]) + gr.Zero()(w.at([*known]) - np.array([*known.values()]))
    program = f"scipy {version('scipy')}; {same} of {len(club)} labels of networkx {version('networkx')}"
    yield Beside("harmonic function, a karate club", program, model + gr.SquaredL2()(w.across(club)), theirs)


INSTALLED: Sequence[Callable[[], Iterator[Beside]]] = (
    scikit_learn,
    scikit_image,
    prox_tv,
    statsmodels,
    networkx,
)
