"""The formula that is printed for a loss is the function that is computed: evaluated at samples with offsets."""

from __future__ import annotations

import re

import law_cases
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.base.declaring import declared
from graphreg.catalogue import BASES
from graphreg.errors import DataError
from graphreg.form.notation import blocks, writing

ROWS, NODES = 24, 4
UNLIKE = [
    (r"\|\|(.+?)\|\|", r"norm(\1)"),
    (r"\|(\w+)\|", r"abs(\1)"),
    (r"<(.+?), (.+?)>", r"dot(\1, \2)"),
    (r"\^", "**"),
    (r"(.+) up to (.+) = (.+), then (.+)", r"(\1) if \2 <= \3 else (\4)"),
    (r"log sum\(", "logsum("),
    (r"W_i'x_r|x_r'w_i|w_i", "at"),
    (r"(?<=[\w)])(?<!if)(?<!else) (?!if |else )(?=[\w(])", " * "),
]
KNOWN = {
    "max": np.maximum,
    "exp": np.exp,
    "log": np.log,
    "abs": abs,
    "norm": np.linalg.norm,
    "dot": np.dot,
    "logsum": lambda each: np.log(np.sum(each)),
}


def python_of(text):
    for pattern, instead in UNLIKE:
        text = re.sub(pattern, instead, text)
    return text


def evaluated(problem, w):
    """The objective at w as a reader of the printed primal computes it."""
    lines = [line.strip() for line in str(problem).split("where\n")[0].splitlines()]
    (said,) = (line for line in lines if line.startswith("sum_r "))
    names = dict(KNOWN)
    for name, argument, formula in re.findall(r"with (\w+)\((\w)\) = (.*)", "\n".join(lines)):
        names[name] = eval(f"lambda {argument}: {python_of(formula)}", names)
    formula = compile(python_of(said.removeprefix("sum_r ")), said, "eval")
    (block,) = problem.form.samples
    total = 0.0
    for r in range(ROWS):
        X = None if block.X is None else block.X[r]
        at = w[block.node[r]] if X is None else w[block.node[r]].reshape(len(X), -1).T @ X
        at = at[0] if X is not None and len(at) == 1 else at
        y = block.y[r]
        total += eval(formula, names | {"at": at, "y_r": y, "o_r": block.offset[r]})
    return total


def data_for(kind, rng):
    frame = pd.DataFrame(rng.normal(size=(ROWS, 2)), columns=["x", "z"]).assign(node=np.arange(ROWS) % NODES)
    targets = {"real": rng.normal(size=ROWS), "sign": rng.integers(0, 2, ROWS), "kind": list("uvw") * (ROWS // 3)}
    frame = frame.assign(off=rng.normal(size=ROWS), amount=np.exp(targets["real"]), **targets)
    if kind is gr.MeanLoss:
        return gr.NodeData.from_frame(frame, node="node", target=["x", "z"])
    for target, offset in (("real", "off"), ("sign", "off"), ("amount", "off"), ("kind", None)):
        try:
            made = gr.NodeData.from_frame(frame, node="node", target=target, features=["x", "z"], offset=offset)
            gr.Problem(kind(made))
        except DataError:
            continue
        return made
    raise AssertionError(f"no data for {kind.__name__}")


@pytest.mark.parametrize("name", declared(BASES["loss"], users=False))
def test_the_printed_loss_is_the_one_that_is_computed(name):
    kind = getattr(gr, name)
    rng = np.random.default_rng(8)
    problem = gr.Problem(kind(data_for(kind, rng), scale="sum"))
    w = rng.normal(size=problem.form.shape)
    assert evaluated(problem, w) == pytest.approx(problem.value(w), rel=1e-12), str(problem)


@pytest.mark.parametrize("term", [*law_cases.LOSSES, *law_cases.PENALTIES], ids=lambda term: type(term).__name__)
def test_a_sum_after_a_minus_stands_in_brackets(term):
    """In text and LaTeX, in the value, the conjugate and the domain of every loss and penalty."""
    n, symbols = term.notation, [writing.same(each) for each in ("p + q", "u", "c", "y")]
    for text, latex in (
        (n.value, n.latex_value),
        (n.conjugate, n.latex_conjugate),
        (n.domain, n.latex_domain),
    ):
        written = blocks.fill(text, latex, *symbols)
        for each in (written.math.text, written.math.latex):
            assert not re.search(r"-\s?p \+ q", each), each
