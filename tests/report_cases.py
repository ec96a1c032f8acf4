"""The shared parts of the tests of reports: pages taken apart, and small problems."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser
from itertools import pairwise

import networkx as nx
import numpy as np

import graphreg as gr

FLOAT, SHORT, BYTE = "<f4", "<i2", "u1"


class Page(HTMLParser):
    """The elements, attributes, scripts and words of a page."""

    def __init__(self, file):
        super().__init__()
        self.text = file.read_text(encoding="utf-8")
        self.tags, self.attributes, self.scripts, self.styles, self.words = [], [], [], [], []
        self.open = []
        self.feed(self.text)
        self.close()
        self.data = json.loads(next(text for kind, text in self.scripts if kind == "application/json"))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.open = [tag, dict(attrs).get("type", "")]

    def handle_endtag(self, tag):
        self.open = []

    def handle_data(self, data):
        if self.open and self.open[0] == "script":
            self.scripts.append((self.open[1], data))
        elif self.open and self.open[0] == "style":
            self.styles.append(data)
        else:
            self.words.append(data)

    @property
    def script(self):
        return next(text for kind, text in self.scripts if not kind)

    @property
    def said(self):
        return " ".join(" ".join(self.words).split())

    def frame(self, k):
        """A frame with its arrays."""
        frame = dict(self.data["frames"][k])
        n, d = len(self.data["nodes"]), len(self.data["features"])
        frame["w"] = array(frame["w"], FLOAT).reshape(n, d)
        frame["node"], frame["ground"] = array(frame["node"], FLOAT), array(frame["ground"], FLOAT)
        frame["cluster"], frame["state"] = array(frame["cluster"], SHORT), array(frame["state"], BYTE)
        frame["edge"] = {
            name: array(each, FLOAT) for name, each in zip(self.data["numbers"], frame["edge"], strict=True)
        }
        return frame


def array(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def chain(n=6, penalty=None, names=None, d=2, strength=0.1, ridge=True):
    """A problem on a path of n nodes whose halves differ; ``names`` are those of its nodes."""
    rng = np.random.default_rng(0)
    names = list(range(n)) if names is None else list(names)
    X = rng.standard_normal((10 * len(names), d))
    node = np.repeat(np.arange(len(names)), 10)
    sign = np.where(node < len(names) / 2, 1.0, -1.0)
    labels = np.empty(len(node), dtype=object)
    labels[:] = [names[k] for k in node]
    data = gr.NodeData.from_arrays(X, sign * X.sum(axis=1) + 0.3 * rng.standard_normal(len(node)), labels)
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(pairwise(names))
    model = gr.SquaredLoss(data) + strength * gr.TotalVariation(graph, penalty or gr.L2())
    return gr.Problem(model + 0.01 * gr.NodePenalty(gr.SquaredL2()) if ridge else model)
