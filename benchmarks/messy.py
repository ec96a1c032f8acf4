"""``python -m benchmarks.messy``: five tables as people have them, through three doors, beside other packages.

The doors are `gr.fit`, an estimator of `graphreg.sklearn` in a grid search, and ``graphreg fit`` with two files, whose
predictions are made from the table of coefficients that it writes. Beside them stand scikit-learn (one model for all,
and one per node) and statsmodels (random intercepts; fixed ones for counts), on the same outer folds. Three
tables are real and are read from shared/data; the benchmark leaves out those that are not there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import graphreg as gr
from graphreg.sklearn import GraphPoissonRegressor, GraphRegressor

from .fits import LOSSES, SCORES, SHORT, rival

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Table:
    """A table, a row per edge, and what the user says of them."""

    name: str
    frame: pd.DataFrame
    edges: pd.DataFrame
    target: str
    node: str
    numbers: list[str]
    categories: list[str]
    kind: str = "number"
    options: dict[str, str] = field(default_factory=dict)  # of `gr.fit`, which the command line has, too

    @property
    def features(self) -> list[str]:
        return [*self.numbers, *self.categories]


# ---- the tables ------------------------------------------------------------------------------------------------------
def counties(data: Path) -> Table:
    """The Democrats' share of 2020 in percent, of counties within states; Alaska and Hawaii have no neighbours."""
    frame = pd.read_csv(data / "us_election_2020_counties.csv.gz", dtype={"fips": str})
    frame["share"] = 100.0 * frame["votes_dem"] / frame["total_votes"]
    names = {"INC910213": "income", "EDU685213": "graduates", "HSG495213": "house_value", "RHI225214": "black"}
    frame = frame.rename(columns={**names, "POP060210": "density", "AGE775214": "over_65"})
    edges = pd.read_csv(data / "us_state_adjacency.csv")
    return Table("counties", frame, edges, "share", "state", [*names.values(), "density", "over_65"], [])


def schools(data: Path) -> Table:
    """Mathematics at 160 schools; those of like pupils are joined."""
    frame = pd.read_csv(data / "hsb82.csv.gz")
    means = frame.groupby("school")[["meanses", "ses"]].mean()
    near = gr.Graph.nearest_neighbours(means.to_numpy(), 3, labels=means.index.tolist()).edges()
    edges = pd.DataFrame(near, columns=["school", "other"])
    return Table("schools", frame, edges, "mAch", "school", ["ses", "meanses"], ["minrty", "sx", "sector"])


def radon(data: Path) -> Table:
    """Radon in 919 houses; nodes are names of counties, and the edges are those of their codes."""
    frame = pd.read_csv(data / "radon_mn.csv").drop(columns=["county", "radon"])
    known = pd.read_csv(data / "us_election_2020_counties.csv.gz", dtype={"fips": str}).query("state == 'MN'")
    plain = {re.sub("[^A-Z]", "", name): name for name in frame["county_name"].unique()}
    short = known["county"].str.upper().str.removesuffix(" COUNTY")
    called = {f: plain.get(re.sub("[^A-Z]", "", s), s) for f, s in zip(known["fips"], short, strict=True)}
    edges = pd.read_csv(data / "us_county_adjacency.csv.gz", dtype=str)
    edges = edges.apply(lambda ends: ends.map(called)).dropna()
    return Table("text ids: radon", frame, edges, "log_radon", "county_name", ["floor", "log_uranium"], [])


def houses() -> Table:
    """Prices in dollars in 30 districts with numbers, dates of sale that are left out, every edge from both ends."""
    rng = np.random.default_rng(1)
    district = rng.choice(np.arange(101, 131), 900, p=rng.dirichlet(np.full(30, 2.0)))
    west = district < 112
    frame = pd.DataFrame({"district": district, "area": rng.normal(95, 30, 900).clip(25).round(1)})
    frame["year_built"] = rng.integers(1890, 2022, 900)
    frame["heating"] = rng.choice(["gas", "oil", "district", "heat pump"], 900, p=[0.5, 0.25, 0.2, 0.05])
    frame["garden"] = rng.random(900) < 0.4
    frame["sold"] = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, 900), unit="D")
    per = np.where(west, 4_100.0, 2_300.0) * frame["area"] + np.where(west, 900.0, 150.0) * (frame["year_built"] - 1950)
    extra = 18_000.0 * frame["garden"] - 15_000.0 * (frame["heating"] == "oil")
    frame["price"] = (per + extra + rng.normal(0, 30_000, 900)).round(-2)
    pairs = [(k, k + step) for k in range(101, 131) for step in (1, 6) if k + step < 131]
    edges = pd.DataFrame([*pairs, *((b, a) for a, b in pairs)], columns=["from", "to"])
    numbers = ["area", "year_built", "garden"]
    return Table("house prices", frame, edges, "price", "district", numbers, ["heating"], options={"repeated": "sum"})


def clinics() -> Table:
    """Visits in a year to 24 clinics; a tenth of the cells of three columns are missing."""
    rng = np.random.default_rng(2)
    site = rng.integers(0, 24, 1200)
    names = [f"St. {chr(65 + k)}/{k:02d}" for k in range(24)]
    frame = pd.DataFrame({"clinic": np.array(names)[site]})
    frame["age"] = rng.normal(52, 16, 1200).round()
    frame["bmi"] = rng.normal(27, 4.5, 1200).round(1)
    frame["smoker"] = rng.choice(["no", "yes", "former"], 1200, p=[0.6, 0.25, 0.15])
    slope = np.where(site < 10, 0.03, 0.005)
    rate = 0.3 + slope * (frame["age"] - 52) + 0.02 * (frame["bmi"] - 27) + 0.4 * (frame["smoker"] == "yes")
    frame["visits"] = rng.poisson(np.exp(rate))
    for column in ("age", "bmi", "smoker"):
        frame.loc[rng.random(1200) < 0.1, column] = np.nan
    edges = pd.DataFrame({"clinic": names[:-1], "next": names[1:]})
    mean = {"missing": "mean"}
    return Table("clinic's visits", frame, edges, "visits", "clinic", ["age", "bmi"], ["smoker"], "count", mean)


def tables(data: Path) -> Iterable[Table]:
    for read in (counties, schools, radon):
        try:
            yield read(data)
        except FileNotFoundError as error:
            print(f"{read.__name__}: left out, {error.filename} is not there")
    yield houses()
    yield clinics()


# ---- other packages --------------------------------------------------------------------------------------------------
def prepared(table: Table) -> Any:
    """Missing cells filled, categories coded, numbers in standard deviations, as each of the others needs it."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    coded = OneHotEncoder(drop="first", sparse_output=False)
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), coded)
    plan = make_column_transformer((numbers, table.numbers), (levels, table.categories), ("passthrough", [table.node]))
    plan.verbose_feature_names_out = False
    return plan.set_output(transform="pandas")


def others(table: Table, train: pd.DataFrame, test: pd.DataFrame) -> dict[str, Any]:
    plan = prepared(table).fit(train)
    X, Z = (plan.transform(rows).drop(columns=table.node).to_numpy(float) for rows in (train, test))
    y, here, there = train[table.target].to_numpy(), train[table.node], test[table.node]
    whole = rival(table.kind, X, y)
    alone = np.array(whole(Z), dtype=float)
    for label in here.unique():
        own, mine = (here == label).to_numpy(), (there == label).to_numpy()
        if own.sum() >= SHORT and mine.any():
            alone[mine] = rival(table.kind, X[own], y[own])(Z[mine])
    nodes = intercepts(table.kind, X, y, Z, here, there)
    return {"sklearn, all": whole(Z), "sklearn, alone": alone, "statsmodels": nodes}


def intercepts(kind: str, X: Any, y: Any, Z: Any, here: pd.Series, there: pd.Series) -> Any:
    """statsmodels: an intercept of its own for each node, random for numbers, fixed for counts."""
    import statsmodels.api as sm

    if kind == "number":
        found = sm.MixedLM(y, sm.add_constant(X), groups=here.to_numpy()).fit()
        shifts = {label: float(np.asarray(effect)[0]) for label, effect in found.random_effects.items()}
        return sm.add_constant(Z, has_constant="add") @ found.fe_params + there.map(shifts).fillna(0.0).to_numpy()
    labels = np.array(sorted(here.unique()))
    train, test = (np.hstack([nodes.to_numpy()[:, None] == labels, rows]) for nodes, rows in ((here, X), (there, Z)))
    return sm.GLM(y, train, family=sm.families.Poisson()).fit().predict(test)


# ---- the three doors -------------------------------------------------------------------------------------------------
def by_python(table: Table, train: pd.DataFrame, test: pd.DataFrame) -> Any:
    said: Any = {"loss": LOSSES[table.kind], "features": table.features, **table.options}
    edges = list(table.edges.iloc[:, :2].itertuples(index=False, name=None))
    return gr.fit(train, edges, target=table.target, node=table.node, progress=False, **said).predict(test).to_numpy()


def by_estimator(table: Table, train: pd.DataFrame, test: pd.DataFrame) -> Any:
    edges = {frozenset(pair) for pair in table.edges.iloc[:, :2].itertuples(index=False, name=None)}
    labels = sorted({*train[table.node]}.union(*edges), key=str)
    graph = gr.Graph.from_edges([tuple(pair) for pair in edges], nodes=labels)
    spread = float(train[table.target].std()) if table.kind == "number" else 1.0
    make = GraphRegressor if table.kind == "number" else GraphPoissonRegressor
    model = make(graph, node=table.node, ridge=1e-4, gap=1e-4)
    grid = {f"{make.__name__.lower()}__strength": spread * np.geomspace(1e-3, 1.0, 10)}
    search = GridSearchCV(make_pipeline(prepared(table), model), grid, cv=KFold(5, shuffle=True, random_state=0))
    return search.fit(train, train[table.target]).predict(test)


def by_command(table: Table, train: pd.DataFrame, test: pd.DataFrame) -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_csv(folder / "train.csv", index=False)
        table.edges.to_csv(folder / "edges.csv", index=False)
        command = [sys.executable, "-m", "graphreg", "fit", "train.csv", "edges.csv", "--csv", "coefficients.csv"]
        command += ["--target", table.target, "--node", table.node, "--features", ",".join(table.features), "--quiet"]
        command += ["--loss", LOSSES[table.kind], *(word for k, v in table.options.items() for word in (f"--{k}", v))]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{table.name}: {done.stderr}")
        found = pd.read_csv(folder / "coefficients.csv", dtype={"node": str}).set_index("node")
    means = train[table.numbers].mean().to_dict()
    filled = test.fillna(means | {c: train[c].mode()[0] for c in table.categories})
    own = found.loc[filled[table.node].astype(str)].reset_index(drop=True)
    link = own["intercept"].to_numpy(float)
    for column in found.columns.drop(["intercept", "cluster"]):
        feature, _, level = column.removesuffix("]").partition("[")
        cells = filled[feature] == level if level else filled[feature].astype(float)
        link = link + own[column].to_numpy() * cells.to_numpy(float)
    return np.exp(link) if table.kind == "count" else link


DOORS = {"gr.fit": by_python, "estimator": by_estimator, "command line": by_command}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.messy", description=__doc__)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the real tables")
    parser.add_argument("--only", default="", help="a part of the names of the tables")
    asked = parser.parse_args()
    for table in tables(asked.data):
        if asked.only not in table.name:
            continue
        scores: dict[str, list[float]] = {}
        seconds: dict[str, float] = {}
        for train, test in KFold(asked.folds, shuffle=True, random_state=0).split(table.frame):
            a, b = (table.frame.iloc[rows].reset_index(drop=True) for rows in (train, test))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = others(table, a, b)
                for name, door in DOORS.items():
                    began = time.perf_counter()
                    found[name] = door(table, a, b)
                    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
            for name, p in found.items():
                scores.setdefault(name, []).append(SCORES[table.kind](b[table.target].to_numpy(), p))
        print(f"{table.name}: {len(table.frame)} rows, {table.frame[table.node].nunique()} nodes, {table.target}")
        for name, each in scores.items():
            took = f"{seconds[name] / asked.folds:6.1f} s a fit" if name in seconds else ""
            print(f"  {name:16} {np.mean(each):10.4g} +- {np.std(each) / np.sqrt(len(each)):8.2g} {took}", flush=True)


if __name__ == "__main__":
    main()
