"""The meaning of the symbols of a problem, with its sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...base.messages import count
from ..form import Form
from .blocks import EdgeWords, SampleWords, Symbols
from .writing import Row, prose, same, some, span


def sizes(symbols: Symbols) -> list[Row]:
    """Samples, edges, nodes, coordinates and parameters, for the primal."""
    rows = [Row(prose(words.block.name), prose(_samples(words))) for words in symbols.samples]
    rows += [*coding(symbols), *_scale_rows(symbols)]
    rows += [Row(prose(words.block.name), prose(_edges(words, symbols))) for words in symbols.edges]
    return [*rows, *_nodes(symbols.form), *coordinates(symbols), *parameters(symbols)]


def coding(symbols: Symbols) -> list[Row]:
    """The parameters as a matrix, where there are several classes, and what targets are that are no numbers."""
    several = any(words.matrix for words in symbols.samples)
    rows = [Row(same("W_i"), prose("w_i as a matrix: a row per feature, a column per class"))] * several
    coded = dict.fromkeys((words.block.loss.coded, words.mark) for words in symbols.samples)
    where = {mark: f" (r in R{mark})" if mark and len({each for each, _ in coded}) > 1 else "" for _, mark in coded}
    said = dict.fromkeys(each + where[mark] for each, mark in coded if each)
    return [*rows, *(Row(same("y_r"), prose(each)) for each in said)]


def _scale_rows(symbols: Symbols) -> list[Row]:
    """The symbols that the scales are made of, each once, with what it is in all losses."""
    meaning = {
        "v_r": "the weight of sample r ({})",
        "V_i": "the sum of the weights at node i ({}); the loss of a node is the weighted mean over its samples",
        "m_i": "the number of samples at node i ({}); the loss of a node is the mean over its samples",
        "b_i": "the scale given for node i ({})",
        "o_r": "the offset of sample r ({})",
    }
    values: dict[str, list[float]] = {}
    for words in symbols.samples:
        for symbol, found in _scale_values(words):
            values.setdefault(symbol, []).extend(found)
    return [Row(same(x), prose(meaning[x].format(span(values[x])))) for x in meaning if x in values]


def _scale_values(words: SampleWords) -> Iterator[tuple[str, list[float]]]:
    loss, data = words.block.loss, words.block.loss.data
    if words.weighted:
        yield "v_r", data.weights.tolist()
    if loss.scale == "mean":
        yield words.node_scale.text[2:], np.bincount(data.node, data.weights).tolist()
    elif isinstance(loss.scale, Mapping):
        yield "b_i", [float(loss.scale[label]) for label in data.labels]
    if words.shifted:
        yield "o_r", words.block.offset.ravel().tolist()


def _samples(words: SampleWords) -> str:
    block = words.block
    among = f", r in R{words.mark}" if words.mark else ""
    if words.predictor:
        return f"{count(block.count, 'sample')} at {count(len(np.unique(block.map.owner)), 'node')}{among}"
    row = f"(K w)_r = {words.row.text}" if words.row else "K sparse"
    return f"{count(block.count, 'sample')} of {count(block.width, 'number')}{among}, {row}"


def _edges(words: EdgeWords, symbols: Symbols) -> str:
    block, form = words.block, symbols.form
    parts = [count(block.count, words.noun)]
    among = f" in {words.set}" if words.set else ""
    if words.noun == "edge":
        parts[0] += f" e = (i, j){among}"
    elif words.noun == "row":
        parts[0] += f" {words.index}{among} of {count(words.width, 'number')}{'' if words.row else ', K sparse'}"
    elif form.latent:
        parts[0] += ", the latent ones left out"
    if words.base_weight:
        sizes, weight = span(block.base_weight), words.base_weight.text
        parts.append(f"weights {weight} from {sizes}" if " to " in sizes else f"all weights {weight} = {sizes}")
    elif not words.constraint:
        parts.append("all weights 1")
    if words.features:
        parts.append(f"on the coordinates {words.features.text} only")
    if block.center is not None:
        c = words.center
        rows = np.unique(block.center, axis=0)
        parts.append(
            f"with the center {c} = {_vector(rows[0])}" if len(rows) == 1 else f"with a center {c} per {words.noun}"
        )
    latent = [bool(np.any(end >= form.space.n_observed)) for end in block.map.pairs]
    if any(latent):
        parts.append("w_i and w_j latent" if latent[0] else "w_j latent")
    return ", ".join(parts)


def _vector(row: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in row[:4]) + (", ...)" if len(row) > 4 else ")")


def _nodes(form: Form) -> list[Row]:
    n = form.space.n_observed
    labels = np.empty(n, dtype=object)
    labels[:] = list(form.space.index)
    silent, alone = np.ones(form.n, dtype=bool), np.ones(form.n, dtype=bool)
    for block in form.samples:
        silent[block.node if block.map.noun == "sample" else block.map.degree > 0.0] = False
    for end in (end for edge in form.edges for end in edge.map.links):
        alone[end] = False
    facts = prose(f"; {count(form.n_components, 'connected component')}")
    for which, word in ((silent[:n], "without data"), (alone[:n], "without edges")):
        if which.any() and not which.all():
            facts += prose(f", {count(int(which.sum()), 'node')} {word} (") + some(labels[which], 3) + prose(")")
    size = f"n = {form.n}" + (f", of which {n} are observed" if form.latent else "")
    rows = [Row(prose("nodes"), prose(f"{size}: ") + some(labels) + facts)]
    rows += [Row(prose("doubt"), prose(form.space.doubt))] * bool(form.space.doubt)
    if form.latent:
        latent = prose(f"{count(len(form.latent), 'node')} without data that the model introduces: ")
        rows.append(Row(prose("latent"), latent + some(form.latent)))
    free = form.free[:n]
    if free.any():
        which = prose(f"{count(int(free.sum()), 'node')} (") + some(labels[free], 3)
        rows.append(
            Row(prose("free"), which + prose(") where no loss decides: every common value is optimal, 0 is given"))
        )
    return rows


def coordinates(symbols: Symbols) -> list[Row]:
    """The coordinates, and the sets of them that penalties act on."""
    names = symbols.form.space.names
    rows = [Row(prose("coordinates"), prose(f"d = {len(names)}: ") + some(names))]
    for columns, letter in symbols.features.items():
        rest = [names[j] for j in range(len(names)) if j not in columns]
        few = len(rest) < len(columns) and len(rest) <= 3
        all_but = prose("all coordinates" + " but " * bool(rest)) + some(rest)
        rows.append(Row(letter, all_but if few else some([names[j] for j in columns])))
    return rows


def parameters(symbols: Symbols) -> list[Row]:
    """The parameters with their values of the moment."""
    known = symbols.parameters.values()
    return [Row(letter, prose(f"a parameter, now {parameter.value:.6g}")) for parameter, letter in known]


def scales(symbols: Symbols) -> list[Row]:
    """s_r and what it is made of, for the dual."""
    rows = [
        Row(
            words.scale + same(" = ") + words.scale_value,
            prose("the scale of sample r" + (" at node i" if words.predictor else "")),
        )
        for words in symbols.samples
    ]
    return rows + _scale_rows(symbols)


def weights(symbols: Symbols) -> list[Row]:
    """The edge weights and centers."""
    rows: list[Row] = []
    for words in symbols.edges:
        of = f"{words.noun} {words.index}" + (f" in {words.set}" if words.set else "")
        if words.base_weight:
            rows.append(Row(words.base_weight, prose(f"the weight of {of} ({span(words.block.base_weight)})")))
        if words.block.center is not None:
            rows.append(Row(same(words.center), prose(f"the center of {words.noun} {words.index}")))
    return rows
