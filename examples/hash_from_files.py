"""The hash of a problem from the user's own files, without graphreg: hash_from_files.py model.toml [DATA FOLDER].

A second route to what `graphreg hash model.toml` prints, for whoever checks a proof and wants to know that it is of
this model file and these tables: csv, gzip, json, math, tomllib and hashlib are all it takes. docs/proofs.md has the
records. It knows SquaredLoss, LogisticLoss, PoissonLoss and MeanLoss; TotalVariation, Consensus and NodePenalty with
L1, L2, LInf, SquaredL2, Zero and NonNegative; and says so where a file asks for more. (Standardised columns depend on
the order in which a mean is summed: write them into the table.)
"""

import csv
import gzip
import hashlib
import json
import math
import sys
import tomllib
from pathlib import Path

LOSSES = {"SquaredLoss": "squared", "LogisticLoss": "logistic", "PoissonLoss": "poisson", "MeanLoss": "mean"}
PENALTIES = ("L1", "L2", "LInf", "SquaredL2", "Zero", "NonNegative")
FUNCTIONS = {name: getattr(math, name) for name in ("log", "log1p", "exp", "sqrt")} | {"abs": abs}
KEYS = {
    "data": "file node target features exclude intercept weights offset keep derive standardise",
    "graph": "edges nodes tail head weight",
    "loss": "family strength parameter scale",
    "total_variation": "penalty strength parameter features",
    "consensus": "features",
    "node_penalty": "penalty strength parameter features",
}


def spell(x):
    """A double: an odd integer in hexadecimal digits, and a power of two."""
    p, q = abs(x).as_integer_ratio()
    e = (p & -p).bit_length() - q.bit_length()
    return f"{'-' * (x < 0)}{p // (p & -p):x}" + (f"p{e}" if e else "") if p else "0"


def table(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def read_samples(keys, folder):
    """The rows that are kept, with derived columns, and the names of the features."""
    rows = table(folder / keys["file"])
    for name, formula in keys.get("derive", {}).items():
        for row in rows:
            numbers = {key: float(value) for key, value in row.items() if key in formula and key != keys["node"]}
            row[name] = eval(formula, {"__builtins__": {}}, numbers | FUNCTIONS)
    for name, asked in keys.get("keep", {}).items():
        wanted = asked if isinstance(asked, list) else [asked]
        rows = [row for row in rows if (row[name] if isinstance(wanted[0], str) else float(row[name])) in wanted]
    features, targets = keys.get("features", []), keys["target"]
    if features == "others":
        taken = {keys["node"], keys.get("weights"), keys.get("offset"), *keys.get("exclude", ()), *keys.get("keep", ())}
        taken |= {targets} if isinstance(targets, str) else set(targets)
        features = [name for name in rows[0] if name not in taken]
    return rows, list(features)


def sample_records(keys, loss, rows, features):
    kind, rule = LOSSES[loss["family"]], loss.get("scale", "mean")
    targets = [keys["target"]] if isinstance(keys["target"], str) else keys["target"]
    weights = [float(row[keys["weights"]]) if "weights" in keys else 1.0 for row in rows]
    total = {}
    for row, weight in zip(rows, weights, strict=True):
        total[row[keys["node"]]] = total.get(row[keys["node"]], 0.0) + weight
    for row, weight in zip(rows, weights, strict=True):
        node, x = row[keys["node"]], [1.0] * keys.get("intercept", False) + [float(row[name]) for name in features]
        y = [float(row[name]) for name in targets]
        y = [1.0 if y[0] == 1 else -1.0] if kind == "logistic" else y
        offset = [float(row[keys["offset"]]) if "offset" in keys else 0.0] * (len(y) if kind == "mean" else 1)
        own = [rule, spell({"mean": total[node], "sum": 1.0}[rule])] if isinstance(rule, str) else spell(float(rule))
        numbers = [None if kind == "mean" else list(map(spell, x)), [spell(v) for v in y], list(map(spell, offset))]
        numbers[1] = numbers[1] if kind == "mean" else numbers[1][0]
        strength = spell(float(loss.get("strength", 1.0)))
        yield ["sample", [node], None, kind, None, strength, own, spell(weight), *numbers]


def edge_records(keys, features, ends, kind=None):
    kind = kind or keys["penalty"]
    for names, weight in ends:
        yield [
            "edge",
            sorted(names),
            features,
            kind,
            None,
            spell(float(keys.get("strength", 1.0))),
            spell(weight),
            None,
        ]


def graph_of(keys, folder, labels):
    """The labels of all nodes, and the edges with their weights."""
    rows = table(folder / keys["edges"])
    first, second, *_ = rows[0]
    tail, head, weight = keys.get("tail", first), keys.get("head", second), keys.get("edge_weight")
    edges = [([row[tail], row[head]], float(row[weight]) if weight else 1.0) for row in rows]
    if keys.get("nodes") == "data":
        edges = [edge for edge in edges if set(edge[0]) <= set(labels)]
    return list(dict.fromkeys([*labels, *(name for names, _ in edges for name in names)])), edges


def records(model, folder):
    for name, keys in model.items():
        if name != "solve" and (name not in KEYS or set(keys) - set(KEYS[name].split())):
            sys.exit(
                f"[{name}] asks for more than this script knows: {sorted(set(keys) - set(KEYS.get(name, '').split()))}"
            )
    if model["data"].get("standardise") or model["loss"]["family"] not in LOSSES:
        sys.exit(
            "standardised columns, and losses but SquaredLoss, LogisticLoss, PoissonLoss, MeanLoss, are not known here"
        )
    rows, features = read_samples(model["data"], folder)
    labels, edges = list(dict.fromkeys(row[model["data"]["node"]] for row in rows)), []
    if "graph" in model:
        labels, edges = graph_of(model["graph"], folder, labels)
    targets = model["data"]["target"]
    names = (
        features if LOSSES[model["loss"]["family"]] != "mean" else [targets] if isinstance(targets, str) else targets
    )
    columns = ["intercept"] * model["data"].get("intercept", False) + names
    yield from [["columns", columns], *(["node", label] for label in labels)]
    yield from sample_records(model["data"], model["loss"], rows, features)
    for name, kind in (("total_variation", None), ("consensus", "Zero"), ("node_penalty", None)):
        if name in model:
            keys, ground = model[name], name == "node_penalty"
            if (kind or keys["penalty"]) not in PENALTIES:
                sys.exit(f"the penalty {keys['penalty']} is not known here")
            ends = [([label], 1.0) for label in labels] if ground else edges
            yield from edge_records(keys, keys.get("features", names if ground else columns), ends, kind)


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return
    path = Path(sys.argv[1])
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else path.parent
    with path.open("rb") as file:
        found = records(tomllib.load(file), folder)
        lines = sorted(json.dumps(record, separators=(",", ":")) for record in found)
    print(hashlib.sha256("\n".join(["graphreg-proof-1", *lines]).encode()).hexdigest())


if __name__ == "__main__":
    main()
