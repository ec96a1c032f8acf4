"""Traits in combination, drawn at random: of the data, of the terms, and of the optimum itself.

``mixed`` draws some of ``TRAITS`` for losses, penalties and a graph or a hierarchy; every third one is `planted`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.wild import WildProblem, wild_problem
from graphreg.datasets.plain import Array

from .families import DECADES, Draft, Rows, Term, absorbed, ends, few_samples, flat_root, singular, strength, written
from .planted import planted

TRAITS = (
    "few samples",
    "copies",
    "singular form",
    "singular form on nodes",
    "light and heavy",
    "saturated flows",
    "many nodes",
    "hierarchy",
    "column scales",
)
GAPS = (0.0, 1e-10, 1e-6, 1e-6, 1e-6)


def combined(seed: int) -> WildProblem:
    """In turn two mixed ones and a planted one."""
    return planted(seed) if seed % 3 == 2 else mixed(seed)


# ---- mixed -----------------------------------------------------------------------------------------------------------
def mixed(seed: int) -> WildProblem:
    """Two to five of ``TRAITS``; 2 to 8 nodes, with many of them 9 to 70."""
    rng = np.random.default_rng([seed, 13])
    traits = rng.choice(TRAITS, size=int(rng.integers(2, 6)), replace=False).tolist()
    many = "many nodes" in traits
    n, p = (
        int(rng.integers(9, 71) if many else rng.integers(2, 9)),
        int(rng.integers(1, 3) if many else rng.integers(1, 5)),
    )
    decades = DECADES[int(rng.integers(2, len(DECADES)))] if "column scales" in traits else 0.0
    scale = 10.0 ** rng.uniform(-decades, decades, size=p)
    family = str(rng.choice(["squared", "squared", "huber", "quantile", "logistic"]))
    rows: dict[Hashable, Rows] = {i: _rows(rng, family, p, scale, traits) for i in range(n)}
    if rng.random() < 0.2 and n > 2:
        rows[int(rng.integers(n))] = Rows(np.zeros((0, p)), np.zeros(0), np.zeros(0))
    level = 2.0**-24 if "saturated flows" in traits and rng.random() < 0.5 else 1.0
    terms, latent = _terms(rng, rows, p, scale, level, traits)
    gap = float(rng.choice(GAPS))
    structure = "hierarchy" if latent else "one graph"
    delta = float(2.0 ** rng.integers(-3, 3))
    return written(seed, Draft(family, rows, terms, traits, gap, delta, latent, structure))


def _rows(rng: np.random.Generator, family: str, p: int, scale: Array, traits: list[str]) -> Rows:
    whole = bool(rng.random() < 0.5)
    if "few samples" in traits:
        found = few_samples(rng, family, p, scale, whole)
    else:
        X = rng.standard_normal((p + int(rng.integers(1, 4)), p)) * scale
        y = rng.standard_normal(len(X)) + X[:, 0] / scale[0]
        found = Rows(X, np.where(y > 0, 1.0, -1.0) if family == "logistic" else y, np.ones(len(X)))
    X, y, weights = found.X, found.y, found.weights
    if "copies" in traits:  # the same rows with other targets, and one a multiple
        X, weights = np.concatenate([X, X, 0.5 * X[:1]]), np.concatenate([weights, weights, weights[:1]])
        y = np.concatenate([y, -y if family == "logistic" else y + rng.integers(-2, 3, size=len(y)), y[:1]])
    if "light and heavy" in traits:
        weights = weights * 2.0 ** rng.integers(-20, 21, size=len(y))
    return Rows(X, y, weights)


def _terms(
    rng: np.random.Generator, rows: dict[Hashable, Rows], p: int, scale: Array, level: float, traits: list[str]
) -> tuple[list[Term], tuple[Hashable, ...]]:
    n, latent = len(rows), ()
    heavy = "light and heavy" in traits
    pairs = [(i, j, w * (float(2.0 ** rng.integers(-20, 21)) if heavy else 1.0)) for i, j, w in ends(rng, n)]
    flat = p > 1 and "singular form" in traits
    kind = str(rng.choice(["L1", "L2", "LInf", "SquaredL2", "HuberNorm"]))
    kind = str(rng.choice(["Quadratic", "Quadratic", "AnalysisL1"])) if flat else kind
    c = level * strength(rng)
    if "hierarchy" in traits:
        kind = "Quadratic" if kind == "AnalysisL1" else kind
        tree, pairs, latent = _hierarchy(rng, n)
        terms = [Term(kind, c, pairs, _parameter(rng, kind, p, scale), tree)]
    else:
        terms = [Term(kind, c, pairs, _parameter(rng, kind, p, scale))]
    nodes = [(i, None, 1.0) for i in range(n)]
    if p > 1 and "singular form on nodes" in traits:
        terms.append(Term("Quadratic", level * strength(rng), nodes, flat_root(rng, p, scale, False)))
    if rng.random() < 0.3:
        kind = str(rng.choice(["SquaredL2", "L1", "L2", "NonNegative"]))
        terms.append(Term(kind, 1.0 if kind == "NonNegative" else level * strength(rng) * 2.0**-6, nodes))
    return terms, latent


def _parameter(rng: np.random.Generator, kind: str, p: int, scale: Array) -> Any:
    if kind in ("Quadratic", "AnalysisL1"):
        return flat_root(rng, p, scale, bool(rng.random() < 0.5), kind)
    return float(2.0 ** rng.integers(-4, 3)) if kind == "HuberNorm" else None


def _hierarchy(rng: np.random.Generator, n: int) -> tuple[Any, list[Any], tuple[Hashable, ...]]:
    """Clusters and weights as the library takes them, all edges, and the latent nodes; two levels or three."""
    count = int(rng.integers(1, min(n, 5) + 1))
    member = {i: f"cluster {i % count}" for i in range(n)}
    names = sorted(set(member.values()))
    leaf = {i: float(2.0 ** rng.integers(-8, 9)) for i in range(n)}
    levels = (2.0 ** rng.integers(-6, 7, size=2)).tolist()
    if count < 2 or rng.random() < 0.5:
        edges = [(i, member[i], leaf[i]) for i in range(n)] + [(name, "root", levels[0]) for name in names]
        return (member, (leaf, levels[0])), edges, (*names, "root")
    side = {name: "west" if k < count // 2 else "east" for k, name in enumerate(names)}
    path = {name: (side[name], name) for name in names}
    clusters = {
        s: {name: [i for i in member if member[i] == name] for name in names if side[name] == s}
        for s in ("west", "east")
    }
    edges = [(i, path[member[i]], leaf[i]) for i in range(n)]
    edges += [(path[name], side[name], levels[0]) for name in names] + [
        (s, "root", levels[1]) for s in ("west", "east")
    ]
    return (clusters, (leaf, *levels)), edges, (*path.values(), "west", "east", "root")


FAMILIES: dict[str, Callable[[int], WildProblem]] = {
    "singular": singular,
    "absorbed": absorbed,
    "combined": combined,
    "planted": planted,
    "tall": partial(wild_problem, tall=True),
}
