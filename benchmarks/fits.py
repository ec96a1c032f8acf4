"""``python -m benchmarks.fits``: `gr.fit` beside one model for all and a model for each node, on rows that none saw.

Ten tables that scikit-learn and statsmodels ship, and ten invented ones, with nodes and a graph each. Outer folds hold
rows out; within the others `gr.fit` chooses its strength. The rivals are ridge, logistic and Poisson regressions of the
same standardised columns by scikit-learn, of all rows and node by node (a node without enough rows takes that of all).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_squared_error
from sklearn.model_selection import KFold

import graphreg as gr

RIDGE = 1e-3  # as in `gr.fit`
SHORT = 8  # rows of a node at least, for a model of its own


@dataclass(frozen=True)
class Case:
    """A table with the column of its nodes, their graph, and the target."""

    name: str
    frame: pd.DataFrame
    graph: nx.Graph
    target: str
    kind: str = "number"


def binned(frame: pd.DataFrame, by: str, count: int) -> tuple[pd.DataFrame, nx.Graph]:
    """Nodes are parts of a column's range, in a path."""
    parts = pd.qcut(frame[by].rank(method="first"), count, labels=False)
    return frame.drop(columns=by).assign(node=parts), nx.path_graph(count)


def near(frame: pd.DataFrame, label: str, k: int = 3) -> nx.Graph:
    """Nodes whose mean features are near each other are joined."""
    means = frame.groupby(label).mean(numeric_only=True)
    scaled = ((means - means.mean()) / (means.std() + 1e-12)).to_numpy()
    return gr.Graph.nearest_neighbours(scaled, k, labels=list(means.index)).to_networkx()


def public() -> Iterable[Case]:
    from statsmodels import datasets as more

    whole: Any = datasets.load_diabetes(as_frame=True).frame
    yield Case("diabetes by age", *binned(whole, "age", 10), "target")
    yield Case("diabetes by bmi", *binned(whole, "bmi", 8), "target")
    wine: Any = datasets.load_wine(as_frame=True).frame.drop(columns="target")
    yield Case("wine: alcohol by hue", *binned(wine, "hue", 6), "alcohol")
    tumours: Any = datasets.load_breast_cancer(as_frame=True).frame.iloc[:, [0, 1, 4, 5, 8, 30]]
    yield Case("tumours by radius", *binned(tumours, "mean radius", 6), "target", "class")
    firms = more.grunfeld.load_pandas().data.drop(columns="year")
    yield Case("Grunfeld's firms", firms.rename(columns={"firm": "node"}), near(firms, "firm"), "invest")
    votes = more.anes96.load_pandas().data[["TVnews", "selfLR", "age", "educ", "income", "vote"]]
    yield Case(
        "votes by education",
        votes.drop(columns="educ").assign(node=votes["educ"].astype(int)),
        nx.path_graph(range(1, 8)),
        "vote",
        "class",
    )
    affairs = more.fair.load_pandas().data.drop(columns="affairs")
    affairs = affairs.assign(rate_marriage=affairs["rate_marriage"].astype(int))[::6].rename(columns={"educ": "node"})
    order = sorted(affairs["node"].unique())
    yield Case("marriages by education", affairs, nx.path_graph(order), "rate_marriage")
    visits = more.randhie.load_pandas().data[::12].reset_index(drop=True)
    yield Case(
        "visits by income",
        *binned(visits[["mdvis", "lncoins", "lpi", "physlm", "disea"]], "disea", 6),
        "mdvis",
        "count",
    )
    cards = more.ccard.load_pandas().data
    yield Case("cards by age", *binned(cards, "AGE", 4), "AVGEXP")
    engel = more.engel.load_pandas().data
    yield Case("food by income", *binned(engel.assign(level=engel["income"]), "level", 5), "foodexp")


def invented(seed: int) -> Iterable[Case]:
    rng = np.random.default_rng(seed)
    graphs: list[nx.Graph] = [nx.path_graph(20), nx.grid_2d_graph(5, 5), nx.cycle_graph(15), nx.complete_graph(8)]
    graphs += [nx.random_geometric_graph(25, 0.35, seed=seed), nx.barbell_graph(8, 2)]
    for k in range(10):
        graph = nx.convert_node_labels_to_integers(graphs[k % len(graphs)])
        n, rows, d = len(graph), int(rng.integers(4, 25)), int(rng.integers(1, 6))
        node = np.repeat(np.arange(n), rows)
        scale, mean = 10.0 ** rng.uniform(-3, 4, d), 10.0 ** rng.uniform(-1, 5, d)
        X = mean + scale * rng.normal(size=(len(node), d))
        pieces = (np.arange(n) * int(rng.integers(1, 4)) // n)[:, None]  # one law, or several
        w = rng.normal(size=(4, d + 1))[pieces[:, 0]] + 0.1 * rng.normal(size=(n, d + 1)) * rng.integers(0, 2)
        link = w[node, 0] + ((X - mean) / scale * w[node, 1:]).sum(axis=1)
        kind = ("number", "class", "number", "count")[k % 4]
        y = {
            "number": 1e3 * (link + rng.normal(size=len(node))),
            "class": (rng.uniform(size=len(node)) < 1 / (1 + np.exp(-link))).astype(int),
            "count": rng.poisson(np.exp(np.clip(link, -3, 3))),
        }[kind]
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(node=node, y=y)
        yield Case(f"invented {k}: {kind}, {n} nodes x {rows}", frame, graph, "y", kind)


def harder(seed: int) -> Iterable[Case]:
    """Errors with heavy tails, errors that differ from node to node, and few rows: each with one law, and with more."""
    rng = np.random.default_rng([seed, 77])
    for k in range(6):
        hard, several = ("heavy tails", "unequal errors", "few rows")[k // 2], k % 2 == 1
        n, d = int(rng.integers(8, 31)), int(rng.integers(1, 4))
        rows = int(rng.integers(2, 6) if hard == "few rows" else rng.integers(8, 25))
        graph = (nx.path_graph(n), nx.random_regular_graph(3, n + n % 2, seed=seed))[int(rng.integers(2))]
        n = len(graph)
        node = np.repeat(np.arange(n), rows)
        X = rng.normal(size=(len(node), d))
        w = np.tile(rng.normal(size=d + 1), (n, 1))
        if several:  # two parts that differ, or an intercept of each node's own
            w += rng.normal(size=d + 1) * (np.arange(n) < n // 2)[:, None] if rng.integers(2) else 0.0
            w[:, 0] += 0.5 * rng.normal(size=n)
        errors = rng.standard_t(2, len(node)) if hard == "heavy tails" else rng.normal(size=len(node))
        errors *= 10.0 ** rng.uniform(-1, 0.7, n)[node] if hard == "unequal errors" else 1.0
        y = w[node, 0] + (X * w[node, 1:]).sum(axis=1) + errors
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]).assign(node=node, y=y)
        yield Case(f"harder {k}: {hard}, {'several laws' if several else 'one law'}, {n} x {rows}", frame, graph, "y")


SCORES: dict[str, Callable[..., float]] = {
    "number": mean_squared_error,
    "class": lambda y, p: log_loss(y, np.clip(p, 1e-9, 1 - 1e-9), labels=[0, 1]),
    "count": lambda y, p: mean_poisson_deviance(y, np.maximum(p, 1e-9)),
}
LOSSES = {"number": "SquaredLoss", "class": "LogisticLoss", "count": "PoissonLoss"}


def rival(kind: str, X: Any, y: Any) -> Callable[[Any], Any]:
    if kind == "class":
        if len(np.unique(y)) < 2:
            return lambda rows: np.full(len(rows), float(np.mean(y)))
        fitted: Any = LogisticRegression(C=1 / RIDGE, max_iter=2000).fit(X, y)
        return lambda rows: fitted.predict_proba(rows)[:, 1]
    model: Any = Ridge(RIDGE) if kind == "number" else PoissonRegressor(alpha=RIDGE / len(X), max_iter=2000)
    return model.fit(X, y).predict


def predictions(case: Case, train: Any, test: Any) -> dict[str, Any]:
    names = [c for c in case.frame.columns if c not in ("node", case.target)]
    mean, deviation = train[names].mean(), train[names].std().replace(0.0, 1.0)
    X, Z = (((each[names] - mean) / deviation).to_numpy() for each in (train, test))
    y = train[case.target].to_numpy()
    whole = rival(case.kind, X, y)
    alone = np.array(whole(Z), dtype=float)
    for label in train["node"].unique():
        here, there = (train["node"] == label).to_numpy(), (test["node"] == label).to_numpy()
        if here.sum() >= SHORT and there.any():
            alone[there] = rival(case.kind, X[here], y[here])(Z[there])
    found = gr.fit(train, case.graph, target=case.target, node="node", loss=LOSSES[case.kind], progress=False)
    return {"fit": found.predict(test).to_numpy(), "pooled": whole(Z), "alone": alone}


def measured(case: Case, seed: int, folds: int) -> dict[str, float]:
    """The mean scores over the folds of one repeat."""
    scores: dict[str, list[float]] = {"fit": [], "pooled": [], "alone": []}
    for train, test in KFold(folds, shuffle=True, random_state=seed).split(case.frame):
        a, b = (case.frame.iloc[rows].reset_index(drop=True) for rows in (train, test))
        for name, p in predictions(case, a, b).items():
            scores[name].append(SCORES[case.kind](b[case.target].to_numpy(), p))
    return {name: float(np.mean(each)) for name, each in scores.items()}


def repeated(case: Case, repeats: int, folds: int, of: int, keep: Path | None) -> dict[str, float]:
    """The mean over the repeats; those that are kept in a file are read from it, and the others are added."""
    lines = keep.read_text().splitlines() if keep is not None and keep.exists() else []
    known = dict(json.loads(line) for line in lines)
    rows: list[dict[str, float]] = []
    for seed in range(repeats):
        key = f"{case.name}, tables of {of}, repeat {seed}, {folds} folds"
        rows.append(known[key] if key in known else measured(case, seed, folds))
        if keep is not None and key not in known:
            with keep.open("a") as file:
                file.write(json.dumps([key, rows[-1]]) + "\n")
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the invented tables")
    parser.add_argument("--harder", action="store_true", help="six harder invented tables, in place of the twenty")
    parser.add_argument("--only", default="", help="a part of the names of the tables")
    parser.add_argument(
        "--keep", type=Path, help="a file of the repeats that are done, from which the same call goes on"
    )
    asked = parser.parse_args()
    print(f"{'table':40} {'fit':>10} {'pooled':>10} {'alone':>10} {'fit / better':>13} {'CPU s':>7}")
    ratios: list[float] = []
    for case in tuple(harder(asked.seed)) if asked.harder else (*public(), *invented(asked.seed)):
        if asked.only not in case.name:
            continue
        began = time.process_time()
        found = repeated(case, asked.repeats, asked.folds, asked.seed, asked.keep)
        ratios.append(found["fit"] / min(found["pooled"], found["alone"]))
        numbers = "".join(f" {found[name]:10.4g}" for name in ("fit", "pooled", "alone"))
        print(f"{case.name:40}{numbers} {ratios[-1]:13.3f} {time.process_time() - began:7.1f}", flush=True)
    print(f"worse than the better one by more than 3%: {sum(r > 1.03 for r in ratios)} of {len(ratios)}")


if __name__ == "__main__":
    main()
