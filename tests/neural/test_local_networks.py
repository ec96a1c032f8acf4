"""Networks at the nodes: on convex ones the steps are those of the library; what they are refused; no certificate."""

from __future__ import annotations

import doctest
import sys
from functools import partial

import networkx as nx
import numpy as np
import pytest

import graphreg as gr

LABELS = list("abcde")
GRAPH = nx.Graph()
GRAPH.add_weighted_edges_from([("c", "a", 0.5), ("a", "b", 1.0), ("b", "c", 2.0), ("c", "d", 0.3), ("d", "e", 1.0)])


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def sgd(torch, lr=0.1):
    return partial(torch.optim.SGD, lr=lr)


def squares(seed=0, labels=LABELS, m=8, p=3):
    """X and y of linear models, per node."""
    rng = np.random.default_rng(seed)
    return {label: (rng.standard_normal((m, p)), rng.standard_normal((m, 1))) for label in labels}


def linear(torch, data, steps, lr=0.1):
    """Linear models with the mean squared error, from 0."""
    module = torch.nn.Linear(3, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(module.weight)
    return gr.neural.LocalNetworks(module, data, torch.nn.functional.mse_loss, sgd(torch, lr), steps)


def problem(data, penalty):
    node = [label for label, (X, _) in data.items() for _ in X]
    X, y = (np.concatenate(each) for each in zip(*data.values(), strict=True))
    m = len(next(iter(data.values()))[0])
    return gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, y.ravel(), node), scale=2.0 / m) + penalty)


def perceptron(torch, seed=0, inputs=5, classes=4):
    torch.manual_seed(seed)
    nn = torch.nn
    return nn.Sequential(nn.Linear(inputs, 6), nn.ReLU(), nn.Linear(6, classes))


def classes(seed=0, sizes=(30, 20, 30, 7)):
    """Nodes of two kinds, with two classes each; as many samples as ``sizes`` says."""
    rng = np.random.default_rng(seed)
    out = {}
    for i, (label, m) in enumerate(zip(LABELS, sizes, strict=False)):
        y = rng.integers(0, 2, m) + 2 * (i % 2)
        X = rng.standard_normal((m, 5)) + np.pad(3.0 * np.eye(4), ((0, 0), (0, 1)))[y]
        out[label] = X, y
    return out


# ---- the steps are the library's -------------------------------------------------------------------------------------
def test_one_round_by_hand(torch):
    """(32) and (33) written out, for squared losses, with the prox as the solution of a linear system."""
    data, lam = squares(), 0.2
    trained = gr.neural.train(linear(torch, data, 300), lam * gr.TotalVariation(GRAPH, gr.L2()), rounds=2)
    i = {label: k for k, label in enumerate(trained.labels)}
    edges = [(i[a], i[b], A) for a, b, A in GRAPH.edges(data="weight")]
    degree = np.array([GRAPH.degree(label) for label in trained.labels])
    w, u = np.zeros((5, 3)), np.zeros((len(edges), 3))
    for _ in range(2):
        back = np.zeros((5, 3))
        for e, (s, t, _) in enumerate(edges):
            back[s] += u[e]
            back[t] -= u[e]
        new = np.empty((5, 3))
        for label, k in i.items():
            X, y = data[label]
            H = 2.0 / len(X) * X.T @ X + degree[k] * np.eye(3)
            new[k] = np.linalg.solve(H, 2.0 / len(X) * X.T @ y[:, 0] + degree[k] * w[k] - back[k])
        ahead = 2.0 * new - w
        for e, (s, t, A) in enumerate(edges):
            flow = u[e] + 0.5 * (ahead[s] - ahead[t])
            u[e] = flow * min(1.0, lam * A / np.linalg.norm(flow))
        w = new
    assert np.abs(u).max() > 0.01
    assert trained.w == pytest.approx(w, abs=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        gr.PrimalDual(balance=1.0, relaxation=1.0),
        gr.PrimalDual(balance=0.6, relaxation=1.7),
        gr.PrimalDual(sigma=0.3, tau={"a": 0.2, "b": 0.4, "c": 0.1, "d": 0.3, "e": 0.5}, relaxation=1.0),
        gr.PFedMe(lam=2.0),
        gr.PFedMe(lam=1.0, local_steps=3, step_size=0.5),
    ],
    ids=lambda method: method.label,
)
def test_rounds_are_those_of_the_library(torch, method):
    """As the inner optimizer converges, the rounds become those with the exact prox."""
    data, penalty = squares(1), 0.2 * gr.TotalVariation(GRAPH, gr.L2()) + 0.1 * gr.NodePenalty(gr.SquaredL2())
    exact = problem(data, penalty)
    observe = gr.Observer("w", rounds=[3])
    run = exact.solve(method, rounds=3, gap=0.0, observe=observe, on_failure="return")
    wanted = run.observed["w"][-1][:5]
    labels = list(exact.form.labels[:5])
    off = []
    for steps in (2, 20, 250):
        trained = gr.neural.train(linear(torch, data, steps), penalty, rounds=3, method=method)
        rows = [trained.labels.index(label) for label in labels]
        off.append(np.abs(trained.w[rows] - wanted).max())
    assert off[2] < 1e-10
    assert off[2] < off[1] < off[0]
    assert trained.objective == pytest.approx(exact.value(trained.w[rows]), rel=1e-12)


def test_long_runs_come_to_the_optimum(torch):
    data, penalty = squares(2), 0.1 * gr.TotalVariation(GRAPH, gr.L1())
    best = problem(data, penalty).solve()
    trained = gr.neural.train(linear(torch, data, 10), penalty, rounds=150)
    assert trained.objective == pytest.approx(best.objective, rel=1e-5)


# ---- losses, data ----------------------------------------------------------------------------------------------------
def test_losses_are_those_of_the_networks_of_the_nodes(torch):
    """Nodes of different sizes are computed in batches, and stand in the order of the data."""
    data, loss = classes(), torch.nn.functional.cross_entropy
    local = gr.neural.LocalNetworks(perceptron(torch), data, loss, sgd(torch))
    w = local.start + 0.3 * np.random.default_rng(0).standard_normal((4, local.d))
    alone = [
        loss(local.network(row)(torch.tensor(X, dtype=torch.float32)), torch.tensor(y)).item()
        for row, (X, y) in zip(w, data.values(), strict=True)
    ]
    assert local.losses(w) == pytest.approx(alone, rel=1e-5)
    assert len(set(np.round(alone, 3))) == 4
    tensor = torch.tensor(w, dtype=torch.float32, requires_grad=True)
    local.values(tensor)[1].backward()
    assert tensor.grad[1].abs().max() > 0
    assert tensor.grad[[0, 2, 3]].abs().max() == 0


def test_what_is_trained(torch):
    """The networks of connected nodes agree, the module that was given stays, and what is frozen does, too."""
    module = perceptron(torch)
    module[2].bias.requires_grad_(False)
    before = {name: each.clone() for name, each in module.state_dict().items()}
    local = gr.neural.LocalNetworks(module, classes(), torch.nn.functional.cross_entropy, sgd(torch, 0.2))
    assert local.d == 6 * 5 + 6 + 4 * 6
    graph = nx.Graph([("e", "d"), ("d", "b"), ("c", "a")])
    trained = gr.neural.train(local, 0.5 * gr.TotalVariation(graph, gr.L2()), rounds=60)
    assert trained.labels == ("a", "b", "c", "d", "e"), "those with data first, in their order"
    w = dict(zip(trained.labels, trained.w, strict=True))
    assert trained.objective < 0.2 * trained.objectives[0]
    assert np.abs(w["a"] - w["c"]).max() < 0.05
    assert np.abs(w["a"] - w["b"]).max() > 0.3
    assert np.abs(w["e"] - w["d"]).max() < 0.05, "a node without data follows its neighbour"
    for name, each in module.state_dict().items():
        assert torch.equal(each, before[name])
        assert torch.equal(trained.network("a").state_dict()[name], before[name]) == (name == "2.bias")


def test_features_are_parameters_of_the_module(torch):
    local = gr.neural.LocalNetworks(perceptron(torch), classes(), torch.nn.functional.cross_entropy, sgd(torch, 0.2))
    penalty = 100.0 * gr.TotalVariation(nx.path_graph(LABELS[:4]), gr.L2(), features=["0.weight", "0.bias"])
    w = gr.neural.train(local, penalty, rounds=80).w
    body = 6 * 5 + 6
    assert np.ptp(w[:, :body], axis=0).max() < 0.1
    assert np.ptp(w[:, body:], axis=0).max() > 0.5


def test_the_same_start_gives_the_same_numbers(torch):
    def run():
        local = gr.neural.LocalNetworks(perceptron(torch, 3), classes(), torch.nn.functional.cross_entropy, sgd(torch))
        return gr.neural.train(local, gr.TotalVariation(nx.path_graph(LABELS[:4]), gr.L2()), rounds=5).w

    assert np.array_equal(run(), run())


def test_every_round_is_shown(torch):
    seen = []
    trained = gr.neural.train(linear(torch, squares(), 5), rounds=3, callback=lambda k, w: seen.append((k, w.copy())))
    assert [k for k, _ in seen] == [0, 1, 2, 3]
    assert len(trained.objectives) == 4
    assert np.array_equal(seen[-1][1], trained.w)
    assert not seen[0][1].any()


def test_what_a_callback_raises_ends_the_training(torch):
    seen = []

    def enough(k, w):
        seen.append(k)
        if k == 2:
            raise StopIteration

    with pytest.raises(StopIteration):
        gr.neural.train(linear(torch, squares(), 5), rounds=9, callback=enough)
    assert seen == [0, 1, 2]


def test_there_is_no_certificate(torch):
    trained = gr.neural.train(linear(torch, squares(), 5), rounds=2)
    assert trained.status == "not convex: no certificate"
    assert trained.certificate is None
    assert str(trained).startswith("not convex: no certificate (objective ")
    assert not {"gap", "bound", "lower_bound", "dual"} & set(dir(trained))


# ---- what is refused -------------------------------------------------------------------------------------------------
def with_bad_node(node, X=None, y=None):
    data = squares()
    data[node] = data[node][0] if X is None else X, data[node][1] if y is None else y
    return data


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (with_bad_node("d", X=np.ones((8, 2))), "node 'd'"),
        (with_bad_node("c", y=np.full((8, 1), np.nan)), "the loss at the node 'c' is nan"),
        (with_bad_node("b", X=np.full((8, 3), "x")), "node 'b'"),
        ({"a": squares()["a"], "e": 3.0}, "node 'e'"),
        ({}, r"data=\.\.\.\) must be a mapping"),
        ([1.0], r"data=\.\.\.\) must be a mapping"),
    ],
)
def test_bad_data(torch, data, said):
    with pytest.raises(gr.errors.ModelError, match=said):
        linear(torch, data, 5)


def test_bad_networks(torch):
    module, data, mse = torch.nn.Linear(3, 1), squares(), torch.nn.functional.mse_loss
    make = gr.neural.LocalNetworks
    with pytest.raises(gr.errors.DataError, match="node 'a' has the shape \\(8, 1\\); take its mean"):
        make(module, data, partial(mse, reduction="none"), sgd(torch))
    with pytest.raises(gr.errors.ModelError, match=r"must be a torch\.nn\.Module, got .*write Linear"):
        make(torch.nn.Linear, data, mse, sgd(torch))
    with pytest.raises(gr.errors.ModelError, match="at least 1"):
        make(module, data, mse, sgd(torch), 0)
    with pytest.raises(gr.errors.ModelError, match="must be a function that makes an optimizer"):
        make(module, data, mse, 0.1)
    with pytest.raises(gr.errors.ModelError, match="nothing to train"):
        make(module.requires_grad_(False), data, mse, sgd(torch))


def test_bad_training(torch):
    local, tv = linear(torch, squares(), 5), gr.TotalVariation(GRAPH, gr.L2())
    train = partial(gr.neural.train, local, rounds=1)
    with pytest.raises(gr.errors.DataError, match="'e', which is not a node"):
        train(gr.TotalVariation(nx.path_graph(LABELS[:4]), gr.L2()))
    with pytest.raises(gr.errors.TermError, match="got the loss SquaredLoss"):
        train(problem(squares(), tv).model)
    with pytest.raises(gr.errors.TermError, match="unknown feature 'wieght'; did you mean 'weight'"):
        train(gr.TotalVariation(GRAPH, gr.L2(), features=["wieght"]))
    with pytest.raises(gr.errors.MethodError, match=r"must be PrimalDual\(\.\.\.\) or PFedMe\(\.\.\.\), got ADMM"):
        train(tv, method=gr.ADMM())
    with pytest.raises(gr.errors.MethodError, match="leave out inexact"):
        train(tv, method=gr.PrimalDual(inexact=3))
    with pytest.raises(gr.errors.MethodError, match=r"give PFedMe\(lam=\.\.\.\)"):
        train(tv, method=gr.PFedMe())
    with pytest.raises(gr.errors.DataError, match="'z', which is not a node"):
        train(tv).network("z")


def test_a_diverging_optimizer_is_named_with_the_node(torch):
    data = squares()
    data["d"] = 1e6 * data["d"][0], data["d"][1]
    with pytest.raises(gr.errors.FailedError, match=r"node 'd' are not finite after round .*smaller steps"):
        gr.neural.train(linear(torch, data, 5), rounds=200)


def test_without_pytorch_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(gr.errors.ModelError, match=r"pip install graphreg\[torch\]"):
        gr.neural.LocalNetworks(object(), squares(), len, len)


@pytest.mark.parametrize("name", ["LocalNetworks", "LocalNetworks.network", "train"])
def test_the_examples_run(torch, name):
    thing = gr.neural
    for part in name.split("."):
        thing = getattr(thing, part)
    said = []
    known = {"gr": gr, "np": np, "graph": nx.path_graph(list("abcd"))}
    for test in doctest.DocTestFinder(recurse=False).find(thing, name, globs=known):
        assert test.examples
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


def test_random_numbers_are_refused_with_what_to_do(torch):
    module = torch.nn.Sequential(torch.nn.Linear(3, 1, dtype=torch.float64), torch.nn.Dropout(0.5))
    local = gr.neural.LocalNetworks(module, squares(), torch.nn.functional.mse_loss, sgd(torch))
    with pytest.raises(gr.errors.ModelError, match=r"draws random numbers, .*; module.eval\(\) turns dropout off"):
        gr.neural.train(local, rounds=1)
    module.eval()
    assert gr.neural.train(local, rounds=1).certificate is None


def test_samples_are_not_printed(torch):
    local = linear(torch, squares(), 1)
    assert repr(local) == "<LocalNetworks: 5 nodes, 3 parameters each; gr.neural.train trains them>"
    with pytest.raises(gr.errors.TermError, match=r"got <LocalNetworks: .* gr.neural.train trains them>$"):
        gr.Problem(local + gr.TotalVariation(GRAPH, gr.L2()))
