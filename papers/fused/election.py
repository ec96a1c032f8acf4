"""Section 6: the presidential election of 2020, Table 1 and Figure S.2."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .. import Evidence, Trial, Verdict, at_least, claim, equal
from ._election import (
    COUNTIES,
    HISTORY,
    MAP,
    METHODS,
    READINGS,
    RIDGE,
    STRENGTH,
    WITHIN,
    Election,
    fitted,
    outlines,
    split,
    tested,
    threshold,
)
from ._instances import Array

STATED: dict[str, float] = dict(zip(METHODS, (0.741, 0.752, 0.793, 0.742), strict=True))
DEVIATION: dict[str, float] = dict(zip(METHODS, (0.034, 0.012, 0.019, 0.011), strict=True))
RIDGES = (1e-5, 1e-4, 1e-3, 0.1, 1.0, 10.0, RIDGE)  # the map is drawn with the last


def _studied(at: Trial, splits: int) -> tuple[dict[str, dict[str, float]], list[dict[str, Any]]]:
    """Mean accuracies by reading and method, and the table of all scores."""
    [found] = at.replicate(split, [{}], splits, with_files=True)
    mean, table = dict[str, dict[str, float]](), list[dict[str, Any]]()
    for reading in READINGS:
        runs = [each[reading] for each in found]
        mean[reading] = {name: float(np.mean([run[name]["accuracy"] for run in runs])) for name in METHODS}
        for name in METHODS:
            sd = float(np.std([run[name]["accuracy"] for run in runs], ddof=1)) if splits > 1 else 0.0
            other = {s: float(np.mean([run[name][s] for run in runs])) for s in ("balanced", "AUC")}
            row = {"predictors": reading, "method": name, "accuracy": mean[reading][name], "sd": sd, **other}
            table.append({**row, "stated accuracy": STATED[name], "stated sd": DEVIATION[name]})
    return mean, table


@claim(
    "fused.table1",
    "Table 1 and section 6",
    stated=STATED,
    data=(COUNTIES, HISTORY),
    experiment=True,
    quick={"splits": 2},
    minutes=2.0,
    full={"splits": 50},
)
def accuracies(at: Trial, splits: int) -> Evidence:
    """On counties left out the accuracies (sd) are: Local 0.741 (0.034), Global 0.752 (0.012), FedADMM along D_loc
    0.793 (0.019), along D_his 0.742 (0.011): FedADMM along D_loc performs best. (Ours are the ridge 0.01 and lambda
    0.03, of which the text says nothing, and 30 states and 51 predictors, where it has 29 and 52.)

    Reason: The text gives neither the ridge nor lambda, on which the order of the methods depends; and 86% of the
    counties are of one class, more than any accuracy that is stated, so that its data or predictors are others.
    """
    # At this lambda Global is ahead of D_loc in both readings; at others it need not be (docs/papers.md).
    mean, table = _studied(at, splits)
    checks = []
    for reading in READINGS:
        found = [mean[reading][name] for name in METHODS]
        stated, sd = (np.array(list(x.values())) for x in (STATED, DEVIATION))
        checks += [
            equal(f"accuracies, {reading}", found, at.given(stated), 2.5, error=sd),
            at_least(f"D_loc less Global, {reading}", mean[reading][METHODS[2]] - mean[reading]["Global"], 0.0),
        ]
    majority = float(1.0 - _read(at).y.mean())
    return Evidence.of(
        *checks,
        counterexample={"ridge": RIDGE, "lambda": STRENGTH, "share of the majority class": majority},
        table=table,
    )


def _read(at: Trial) -> Election:
    counties, history = at.file(COUNTIES), at.file(HISTORY)
    assert counties is not None
    assert history is not None
    return Election.read(counties, history)


# ---- Figure S.2 ------------------------------------------------------------------------------------------------------
def _components(n: int, i: Array, j: Array, kept: Array) -> Array:
    """The number of each node's component, 0 for the largest, and -1 for nodes without an edge."""
    joined = coo_array((np.ones(kept.sum()), (i[kept], j[kept])), shape=(n, n))
    label = connected_components(joined, directed=False)[1]
    sizes = np.bincount(label)
    rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
    return np.where(sizes[label] > 1, rank[label], -1)


def _nearest(n: int, i: Array, j: Array, statistic: Array) -> tuple[float, Array]:
    """The threshold, of all, at which the second largest component is largest; and the components there."""
    found = [(t, _components(n, i, j, statistic <= t)) for t in np.sort(statistic)]
    return max(found, key=lambda each: int((each[1] == 1).sum()))


def _draw_map(figure: Any, data: dict[str, Any]) -> None:
    from matplotlib.patches import Patch, Polygon

    looks = {-1: ("0.8", ""), 0: ("1.0", "////"), 1: ("0.35", ""), 2: ("1.0", "....")}
    panels = figure.subplots(2, 1)
    for axes, (title, cluster) in zip(panels, data["maps"].items(), strict=True):
        for fips, rings in data["rings"].items():
            shade, hatch = looks[min(cluster[fips], 2)] if fips in cluster else ("1.0", "")
            for ring in rings:
                axes.add_patch(
                    Polygon(ring, closed=True, facecolor=shade, hatch=hatch, edgecolor="0.25", linewidth=0.4)
                )
        axes.autoscale_view()
        axes.set(aspect="equal", title=title)
        axes.invert_yaxis()
        axes.axis("off")
    names = ("no edge", "largest cluster", "second", "others")
    handles = [
        Patch(facecolor=s, hatch=h, edgecolor="0.25", label=name)
        for (s, h), name in zip(looks.values(), names, strict=True)
    ]
    figure.legend(
        handles=[*handles, Patch(facecolor="1.0", edgecolor="0.25", label="not considered")], loc="outside right"
    )
    figure.set_size_inches(6.0, 6.4)


def _selected(of: Any, X: Any, size: float) -> tuple[Any, Any, Any, float, Any]:
    """The ends of all pairs, their statistics, the threshold of (14), and the clusters that it leaves, at a ridge."""
    loss, ridge = fitted(X, of.y, of.node, size)
    i, j, statistic = tested(loss + ridge)
    limit = threshold(X.shape[1], len(i))
    return i, j, statistic, limit, _components(len(of.states), i, j, statistic <= limit)


@claim(
    "fused.figS2",
    "Figure S.2 and section S.2",
    stated="two main clusters, and states that are connected to none",
    expected=Verdict.FAILS,
    data=(COUNTIES, HISTORY, MAP),
    experiment=True,
    figure=_draw_map,
)
def clusters(at: Trial) -> Evidence:
    """The graph that edge selection leaves of all pairs of states has two connected components of several states, and
    some states without an edge."""
    # (13) and (14) in both readings, on all counties; no local estimate exists without a ridge, of which the text says
    # nothing: so with each of seven decades.
    of, place = _read(at), at.file(MAP)
    assert place is not None
    n, table, counts, maps = len(of.states), list[dict[str, Any]](), list[int](), dict[str, dict[str, int]]()
    largest = dict[str, float]()
    for reading in READINGS:
        X = of.predictors(reading)
        found = [_selected(of, X, size) for size in RIDGES]
        for size, (_, _, statistic, _, cluster) in zip(RIDGES, found, strict=True):
            counts.append(len(set(cluster[cluster >= 0].tolist())))
            largest[f"{reading}, ridge {size:g}"] = float(statistic.max())
        i, j, statistic, limit, cluster = found[-1]
        lower, nearest = _nearest(n, i, j, statistic)
        table.append({
            "predictors": reading, "largest W^2": float(statistic.max()), "chi^2 of (14)": limit, "pairs": len(i),
            "pairs removed": int((statistic > limit).sum()), "clusters": counts[-1],
            "threshold with the largest second cluster": lower, "its size": int((nearest == 1).sum()),
        })  # fmt: skip
        if reading == WITHIN:
            maps[f"as (14) says: {int((statistic <= limit).sum())} of {len(i)} pairs kept"] = _by_fips(of, cluster)
            maps[f"W^2 <= {lower:.3g} in place of {limit:.3g}"] = _by_fips(of, nearest)
    rings = {fips: [ring[::2] for ring in each if len(ring) > 12] for fips, each in outlines(place).items()}
    return Evidence.of(
        at_least("clusters of several states, both readings, each ridge", counts, 2),
        counterexample={"largest W^2": largest, "chi^2 of (14)": [row["chi^2 of (14)"] for row in table]},
        table=table,
        data={"maps": maps, "rings": rings},
    )


def _by_fips(of: Election, cluster: Array) -> dict[str, int]:
    return dict(zip(of.fips, cluster.tolist(), strict=True))
