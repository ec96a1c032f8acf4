"""The critical value of lambda, from which on all nodes agree."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import optimum
from ._instances import Instance


@claim("gtv.lambda-crit", "section III-A, after (16)", stated="there is a critical value")
def critical_value(at: Trial) -> Evidence:
    """From a critical value of lambda on, which depends on the losses and the edges, the solution is constant over all
    nodes. By (28) it is on a tree the largest of ||sum of grad L_i(wbar) over a subtree||_* / A_e, wbar the pooled
    optimum.

    Correction (substance): For norms. The squared penalty has no critical value: its solution is constant for no
    lambda.
    """
    of = Instance.drawn(at.rng(), n=8, graph=nx.random_labeled_tree(8, seed=3))
    gradients, A = of.gradients(np.tile(of.pooled(), (of.n, 1))), at.given(of.A)
    checks, smooth = [], optimum(of.problem(gr.SquaredL2(), 1e4))
    for phi, dual in ((gr.L2(), 2), (gr.L1(), np.inf), (gr.LInf(), 1)):
        name, loads = type(phi).__name__, []
        for e, weight in enumerate(A):
            cut = of.graph()
            cut.remove_edge(int(of.tail[e]), int(of.head[e]))
            part = sorted(nx.node_connected_component(cut, int(of.tail[e])))
            loads.append(np.linalg.norm(gradients[part].sum(axis=0), dual) / weight)
        found = gr.strength_max(of.problem(phi, 1.0))
        spread = [np.abs(of.incidence @ optimum(of.problem(phi, a * found.value)).coef).max() for a in (1.01, 0.9)]
        checks += [
            equal(f"{name}: gr.strength_max, and by subtrees", found.value, max(loads), 1e-8),
            at_most(f"{name}: max |Dw| at 1.01 of it", spread[0], 1e-6),
            at_least(f"{name}: max |Dw| at 0.9 of it", spread[1], 1e-3),
            at_least(f"{name}: by how much a point is better at 0.999 of it", found.better(0.999).decrease, 1e-9),
        ]
    return Evidence.of(
        at_most("1/2 ||.||^2: lambda max |Dw| at lambda = 1e4", 1e4 * np.abs(of.incidence @ smooth.coef).max(), 1e-3),
        corrected=checks,
    )


@claim("gtv.lambda-crit-thm2", "section IX-B3", stated="characterised by Theorem 2")
def by_theorem_2(at: Trial) -> Evidence:
    """On a star the critical value is characterised by Theorem 2, with all nodes as one cluster: it is the largest
    ||grad L_i(wbar)|| / A_i of a peripheral node. (Ours: on other graphs Theorem 2 gives a sufficient value, which may
    be larger than needed.)"""
    graphs = {
        "star": nx.star_graph(7),
        "path": nx.path_graph(7),
        "cycle": nx.cycle_graph(7),
        "complete": nx.complete_graph(7),
        "wheel": nx.wheel_graph(7),
    }
    table, letter = list[dict[str, Any]](), np.nan
    for k, (name, graph) in enumerate(graphs.items()):
        of = Instance.drawn(at.rng(k), n=len(graph), graph=graph)
        problem = of.problem(gr.L2(), 1.0)
        sufficient = gr.theory.recovery(problem, dict.fromkeys(range(of.n), 0)).interval or (np.nan, np.nan)
        value = gr.strength_max(problem).value
        table.append({"graph": name, "Theorem 2": sufficient[0], "critical": value, "ratio": sufficient[0] / value})
        if name == "star":
            gradients = np.linalg.norm(of.gradients(np.tile(of.pooled(), (of.n, 1))), axis=1)
            letter = (gradients[1:] / at.given(of.A)).max()
    ratio = {row["graph"]: row["ratio"] for row in table}
    return Evidence.of(
        equal("on the star: the critical value, and max_i ||grad L_i(wbar)|| / A_i", table[0]["critical"], letter),
        equal("on the star: Theorem 2's value, and that", table[0]["Theorem 2"], letter, 1e-6),
        at_least("Theorem 2's value over the critical one, on all graphs", list(ratio.values()), 1.0, 1e-6),
        at_least(
            "the same on the cycle, the complete graph or the wheel, where it is largest", max(ratio.values()), 1.1
        ),
        table=table,
    )
