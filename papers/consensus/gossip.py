"""Networks, mixing matrices and local SGD: Figure 2, Assumption 1, and what is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import fixed, optimum, rows, watched
from ..figures import INK, MARKERS
from ._instances import Array, Design, matrix, network

Family = Callable[[int], "nx.Graph[Any]"]
FIGURE_2 = [
    [11 / 20, 1 / 5, 0, 0, 1 / 4, 0],
    [1 / 5, 1 / 5, 1 / 5, 0, 1 / 5, 1 / 5],
    [0, 1 / 5, 3 / 10, 1 / 4, 0, 1 / 4],
    [0, 0, 1 / 4, 1 / 4, 1 / 4, 1 / 4],
    [1 / 4, 1 / 5, 0, 1 / 4, 3 / 10, 0],
    [0, 1 / 5, 1 / 4, 1 / 4, 0, 3 / 10],
]


@claim("consensus.metropolis", "Figure 2", stated="the matrix")
def figure_2(at: Trial) -> Evidence:
    """C of the network of Figure 2 by the Metropolis-Hastings rule, c_ij = 1/(max(d_i, d_j) + 1)."""
    printed = np.array(FIGURE_2)
    graph: nx.Graph[int] = nx.empty_graph(6)
    graph.add_edges_from((int(i), int(j)) for i, j in np.argwhere(np.triu(printed, 1)))
    stated = at.given(printed)
    return Evidence.of(
        equal("C", matrix(graph), stated, 1e-12), equal("sums of the rows", stated.sum(axis=1), 1.0, 1e-12)
    )


@claim("consensus.mixing", "Assumption 1, remark", stated="necessary and sufficient")
def mixes(at: Trial) -> Evidence:
    """C^s -> 11'/K if and only if all other eigenvalues have a modulus of at most rho < 1; then (a_1, ..., a_K) C^s ->
    the mean in every column, and K (w_k grad f_k) C^s -> sum_k w_k grad f_k."""
    C, K = np.array(FIGURE_2), 6
    rho = at.given(gr.theory.mixing(nx.from_numpy_array(C - np.diag(np.diag(C))), C.tolist()).rho)
    s = np.arange(1, 21)
    off = [np.linalg.norm(np.linalg.matrix_power(C, k) - 1.0 / K, 2) for k in s.tolist()]
    G, w = at.rng(0).standard_normal((3, K)), at.rng(1).dirichlet(np.ones(K))
    limit = K * (w * G) @ np.linalg.matrix_power(C, 200)
    swings = matrix(nx.complete_bipartite_graph(3, 3))
    swings = (swings - np.diag(np.diag(swings))) / (1.0 - np.diag(swings))[:, None]  # the eigenvalue -1
    powers = [np.linalg.norm(np.linalg.matrix_power(swings, k) - 1.0 / K, 2) for k in (100, 101)]
    return Evidence.of(
        equal("||C^s - 11'/K|| and rho^s, s = 1 to 20", off, rho**s, 1e-12, "absolute"),
        equal("K (w_k g_k) C^200 and sum_k w_k g_k", limit, np.tile((G @ at.given(w))[:, None], K), 1e-10),
        at_least("||C^s - 11'/K|| with an eigenvalue -1, s = 100, 101", powers, 1.0 - 1e-9),
    )


@claim("consensus.neighbours", "section 5, Network setup", stated="K_neighbor")
def neighbours(at: Trial) -> Evidence:
    """Where |k - k'| <= K_neighbor/2 or |k - k'| >= K - K_neighbor/2 are connected, each node has K_neighbor
    neighbours.

    Correction (misprint): So it is for even numbers; for odd ones it is one less.
    """
    odd, even = (3, 5, 7, 9), (2, 4, 6, 8)

    def degrees(each: tuple[int, ...]) -> Array:
        return np.array([[degree for _, degree in network(20, number).degree] for number in each])

    return Evidence.of(
        equal("neighbours of 20 nodes, odd", degrees(odd), np.array(odd)[:, None]),
        corrected=[
            equal("neighbours of 20 nodes, odd, and one less", degrees(odd), at.given(np.array(odd))[:, None] - 1.0),
            equal("neighbours of 20 nodes, even", degrees(even), np.array(even)[:, None]),
        ],
    )


@claim("consensus.saving", "Local SGD algorithm", stated="(1 - 1/tau) 100%")
def saving(at: Trial) -> Evidence:
    """Local SGD, synchronised at every t + 1 that tau divides, reduces the communication by (1 - 1/tau) 100%."""
    problem, taus = Design(6, 12).problem(at.rng()), np.array([1, 2, 3, 5, 10])
    ledgers = [fixed(problem, gr.LocalSGD(0.01, tau=tau), 60, seed=0).ledger for tau in taus.tolist()]
    first = [fixed(problem, gr.LocalSGD(0.01, tau=5), t).ledger.messages["method"] for t in (4, 5, 9)]
    messages, size = (np.array([getattr(each, name)["method"] for each in ledgers]) for name in ("messages", "bytes"))
    stated = 1.0 - 1.0 / at.given(taus)
    return Evidence.of(
        equal("messages saved, tau = 1, 2, 3, 5, 10", 1.0 - messages / messages[0], stated),
        equal("bytes saved", 1.0 - size / size[0], stated),
        equal("gossips in 4, 5 and 9 rounds, tau = 5", np.array(first) / messages[0] * 60.0, [0.0, 1.0, 1.0]),
    )


@claim("consensus.single-pass", "after (4)", stated="each sample once")
def single_pass(at: Trial) -> Evidence:
    """The samples of each client are taken one after the other without replacement: T = n_k steps take each once."""
    problem = Design(6, 30).problem(at.rng())
    theta = at.rng(1).standard_normal((6, 6))
    still = (gr.LocalSGD(1e-300, tau=1000, replacement=each) for each in (False, True))
    once, again = (fixed(problem, method, 30, seed=0, start=theta).gathered for method in still)
    full = gr.LocalSGD(1.0, tau=1000, batch=None)  # one step along the full gradient: K grad f_k = theta_0 - theta_1
    first, second = watched(problem, full, 1, "state.theta", start=at.given(theta))["state.theta"]
    gradient = (first - second) / 6.0
    return Evidence.of(
        equal("passes", once["passes"], 1.0, 0.0),
        equal("mean gradient of 30 steps at one theta, and the full gradient", once["gradient_mean"], gradient, 1e-9),
        at_least("how far it is off with replacement", np.abs(again["gradient_mean"] - gradient).max(), 0.01),
    )


# ---- spectra ---------------------------------------------------------------------------------------------------------
@claim("consensus.star", "Table 1", stated=2.0)
def star(at: Trial) -> Evidence:
    """On the star the spectral gap of the lazy Metropolis matrix is of the order K^-2, so that K = o(T^(1/13)).

    Correction (constant): The gap is exactly 1/(2 K), so that q = 1 and K = o(T^(1/7)).
    """
    sizes = np.array([10, 20, 40, 80, 160])
    q = gr.theory.sparseness_exponent(lambda K: nx.star_graph(K - 1), sizes.tolist())
    gaps = q.table["gap"].to_numpy()
    order = gr.theory.largest_network(1000, exponent=float(q)).order
    return Evidence.of(
        equal("q", float(q), gr.theory.printed.sparseness_exponent("star"), 1e-6),
        corrected=[
            equal("gap", gaps, 0.5 / at.given(sizes), 1e-9),
            equal("q, corrected", float(q), at.given(1.0), 1e-9),
            equal("order of K, corrected", order, 1.0 / 7.0, 1e-9),
        ],
    )


def _torus(dimension: int) -> Family:
    return lambda side: nx.grid_graph([side] * dimension, periodic=True)


def _erdos_renyi(K: int) -> nx.Graph[int]:
    """A connected one of mean degree 4 log K."""
    drawn = (nx.fast_gnp_random_graph(K, 4.0 * np.log(K) / K, seed=seed) for seed in range(1000))
    return next(graph for graph in drawn if nx.is_connected(graph))


FAMILIES: dict[str, tuple[Family, tuple[str, int | None], str]] = {  # with the name in Table 1, and how sizes are given
    "random regular, degree 8": (lambda K: nx.random_regular_graph(8, K, seed=0), ("expander", None), "nodes"),
    "torus, 2-D": (_torus(2), ("torus", 2), "squares"),
    "torus, 3-D": (_torus(3), ("torus", 3), "cubes"),
    "grid, 2-D": (lambda side: nx.grid_2d_graph(side, side), ("grid", None), "squares"),
    "star": (lambda K: nx.star_graph(K - 1), ("star", None), "nodes"),
    "cycle": (nx.cycle_graph, ("cycle", None), "nodes"),
    "Erdos-Renyi, mean degree 4 log K": (_erdos_renyi, ("Erdos-Renyi", None), "nodes"),
}


ORDERS = (1.0, 2.0 / 14.0, 3.0 / 15.0, 1.0 / 7.0, 1.0 / 13.0, 1.0 / 13.0)  # of T in the last column of Table 1


def _table_1(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    for k, (name, (nodes, gaps, q)) in enumerate(data.items()):
        stated = gaps[0] * (np.array(nodes) / nodes[0]) ** -q
        axes.plot(nodes, stated, color="0.8", ls="-", lw=4.0, marker="", label=None if k else "stated: K^-q", zorder=0)
        style = {"color": "0.5", "marker": "*", "ls": ":"} if k == 6 else {"color": INK[k], "marker": MARKERS[k]}
        axes.plot(nodes, gaps, label=name, markersize=4.0, linewidth=1.0, **style)
    axes.set(xlabel="number of nodes K", ylabel="spectral gap 1 - rho, lazy Metropolis", xscale="log", yscale="log")
    figure.legend(*axes.get_legend_handles_labels(), ncols=3, loc="outside lower center")


@claim(
    "consensus.table1",
    "Table 1",
    stated="q = 0, 2/k, 1, 2, 2, 0",
    perturbation=0.2,
    experiment=True,
    quick={"nodes": (100, 200, 400, 800), "squares": (10, 14, 20, 28), "cubes": (5, 6, 8, 10)},
    full={
        "nodes": (100, 200, 400, 800, 1600, 3200),
        "squares": (10, 14, 20, 28, 40, 56),
        "cubes": (5, 6, 8, 10, 12, 15),
    },
    figure=_table_1,
)
def table_1(at: Trial, **sizes: tuple[int, ...]) -> Evidence:
    """The spectral gap of the lazy Metropolis matrix closes as K^-q: q = 0 for expanders and Erdos-Renyi graphs, 2/k
    for k-dimensional tori, 1 for 2-D grids, 2 for stars and cycles; by Theorem 6 K = o(T^(1/(6q + 1))).

    Correction (constant): For the star q = 1, not 2.
    """
    found = {name: gr.theory.sparseness_exponent(make, sizes[by]) for name, (make, _, by) in FAMILIES.items()}
    stated = {name: gr.theory.printed.sparseness_exponent(*of) for name, (_, of, _) in FAMILIES.items()}
    table = [
        {"network": name, "q": float(q), "standard error": q.std_error, "stated q": stated[name]}
        | {"order of K": gr.theory.largest_network(1000, exponent=max(float(q), 0.0)).order}
        | {"stated order of K": 1.0 / (6.0 * stated[name] + 1.0)}
        for name, q in found.items()
    ]
    q, printed = np.array([*map(float, found.values())]), np.array([*stated.values()])
    right = np.where(np.array([*found]) == "star", 1.0, at.given(printed))
    orders = [gr.theory.largest_network(1000, exponent=each).order for each in printed[:-1].tolist()]
    curves = {name: [*(each.table[c].tolist() for c in ("nodes", "gap")), stated[name]] for name, each in found.items()}
    return Evidence.of(
        equal("q, as printed", q, printed, 0.15, "absolute"),
        corrected=[
            equal("q, that of the star corrected", q, right, 0.15, "absolute"),
            equal("order of K by the printed q (all but Erdos-Renyi), and as printed", orders, ORDERS, 1e-12),
        ],
        table=table,
        data=curves,
    )


# ---- clients that do not answer --------------------------------------------------------------------------------------
@claim(
    "consensus.nonresponse",
    "Discussion, Non-response of the clients",
    stated="to be studied",
    perturbation=0.3,
    experiment=True,
    quick={"rounds": 4000},
)
def nonresponse(at: Trial, rounds: int) -> Evidence:
    """Where each client answers a gossip with probability 1 - p, and a pair exchanges where both do, a share (1 - p)^2
    of the messages is sent, and local SGD with a decreasing step still ends at the optimum."""
    problem, p = Design(12, 20, scales=0.3).problem(at.rng()), np.array([0.0, 0.25, 0.5, 0.75])
    best = optimum(problem).coef[0]
    share, off = np.zeros(4), np.zeros((4, 2))
    look, arcs = gr.Observer("state.theta", rounds=[rounds // 10, rounds]), 2 * 24
    for k, each in enumerate(p.tolist()):
        method = gr.LocalSGD(gr.DecreasingStep(alpha=1.0), batch=None, availability=1.0 - each)
        run = fixed(problem, method, rounds, seed=k, observe=look)
        assert run.observed is not None
        share[k] = run.ledger.messages["method"] / (rounds * arcs)
        off[k] = np.sqrt(((run.observed["state.theta"] - best) ** 2).sum(axis=2).mean(axis=1)) / np.linalg.norm(best)
    error = np.sqrt((1.0 - p) ** 2 * (1.0 - (1.0 - p) ** 2) / rounds / 6.0 + 1e-8)
    table = {"p": p, "share of the messages": share, "(1 - p)^2": (1.0 - p) ** 2}
    table |= {"distance after a tenth": off[:, 0], "at the end": off[:, 1]}
    return Evidence.of(
        equal("share of the messages", share, (1.0 - at.given(p)) ** 2, 4.0, error=error),
        at_most("distance over that after a tenth of the rounds", off[:, 1] / off[:, 0], 0.2),
        table=rows(table),
    )
