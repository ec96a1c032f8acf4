"""Proofs: every family is proved and checked; what is not true is not proved."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from exact_bounds import exact_dual, exact_primal
from factories import thinned
from places import EXAMPLES

import graphreg as gr
from benchmarks.claims import KINDS, case, outcome
from benchmarks.forgeries import tampered
from benchmarks.proofs import of_rows
from graphreg import verify
from graphreg.certificate.proof import model_hash
from graphreg.certificate.proof.statement import text
from graphreg.datasets import random_problem
from graphreg.errors import ProofError
from graphreg.verify import NotProvedError, check

CHAIN = nx.path_graph(4)


def data(m=3, d=2, n=4, seed=0, binary=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n * m, d))
    y = X.sum(axis=1) + 0.3 * rng.standard_normal(n * m)
    return gr.NodeData.from_arrays(X, (y > 0).astype(int) if binary else y, np.repeat(np.arange(n), m))


def solved(model, gap=1e-6):
    return gr.Problem(model).solve(gap=gap, on_failure="return")


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    """A proof with slack and saturated edges, as text."""
    model = gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(CHAIN, gr.L1()) + 0.1 * gr.NodePenalty(gr.L2())
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    solved(model, gap=1e-7).prove(path, ["near"])
    return json.loads(path.read_text())


def checked(document, **options):
    return check(json.dumps(document).encode(), **options)


def test_a_point_outside_its_constraints_is_told_once():
    below = nx.DiGraph([(0, 1), (1, 0)])
    found = solved(gr.SquaredLoss(data(d=1)) + gr.NonNegative()(gr.w.across(below) - 1.0))
    with pytest.raises(
        ProofError, match=r"^no exact primal point was found: (?!.*edges\[.*edges\[).*outside the domain$"
    ):
        gr.certificate.proof.prove(found.certificate, "never.json")


# ---- true ones -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", thinned(range(24), every=4))
def test_random_problems_are_proved(seed, tmp_path):
    """On 6 problems; on 24 with ``make test ARGS=--whole``, on many by `make proofs`."""
    solution = solved(random_problem(seed).model)
    proved = solution.prove(tmp_path / "proof.json", ["near", "fused"])
    text = (tmp_path / "proof.json").read_bytes()
    found = check(text, with_flint=seed % 3 > 0)
    assert found.hash == proved.hash
    bounds = Fraction(found.lower, 1 << verify.UNIT), Fraction(found.upper, 1 << verify.UNIT)
    assert proved.lower <= bounds[0] <= bounds[1] <= proved.upper
    assert proved.upper - proved.lower <= 1.2 * solution.certificate.gap + 1e-12 * abs(proved.upper)


def test_both_arithmetics_agree(proof):
    with_flint, without = checked(proof), checked(proof, with_flint=False)
    assert (with_flint.lower, with_flint.upper, with_flint.hash) == (without.lower, without.upper, without.hash)


def test_the_prover_needs_no_flint(tmp_path):
    from graphreg.certificate.proof import prove

    solution = solved(gr.LogisticLoss(data(binary=True)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2()))
    first = prove(solution.certificate, tmp_path / "a.json")
    second = prove(solution.certificate, tmp_path / "b.json", python_flint=False)
    assert (first.lower, first.upper, first.hash) == (second.lower, second.upper, second.hash)


def test_many_coupled_groups_are_proved_exactly(tmp_path):
    """Two features are shared along edges, one is each node's own, and no node has samples for all three: one system
    for 72 totals."""
    model = gr.SquaredLoss(data(m=2, d=3, n=70)) + gr.Consensus(nx.path_graph(70), features=["x0", "x1"])
    solution = solved(model)
    proved = solution.prove(tmp_path / "proof.json")
    assert solution.certificate.dual <= proved.lower <= proved.upper
    assert not proved.within
    assert check((tmp_path / "proof.json").read_bytes()).within is None


def test_what_is_left_of_the_balance_is_charged_within_a_box(proof):
    document = json.loads(json.dumps(proof))
    first = document["dual"]["flows"][0][0]
    first[0] = text(verify.number(first[0]) + verify.rational(1, 1 << 1400))
    with pytest.raises(NotProvedError, match="do not balance"):
        checked(document)
    found = checked(document | {"within": "1p1000", "claims": document["claims"][:1]})
    assert "among all w with entries up to 2^" in str(found)


def test_an_exact_optimum_fuses(tmp_path):
    values = gr.NodeData.from_arrays(None, np.array([1.0, 1.5, 4.0, 4.5]), [0, 1, 2, 3])
    solution = solved(gr.MeanLoss(values) + 0.5 * gr.TotalVariation(CHAIN, gr.L1()), gap=1e-12)
    solution.prove(tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    # by hand: {0, 1} and {2, 3} fuse at their means, drawn together by 0.5 / 2 each
    document["w"] = [[text(Fraction(x))] for x in (1.5, 1.5, 4.0, 4.0)]
    document["dual"] = {
        "prices": [[[text(Fraction(x))] for x in (0.5, 0.0, 0.0, -0.5)]],
        "flows": [[[text(Fraction(x))] for x in (-0.5, -0.5, -0.5)]],
    }
    at_capacity = {"says": "fused", "block": 0, "edge": 0}
    with pytest.raises(NotProvedError, match="the flow has no slack"):
        checked(document | {"claims": [*document["claims"], at_capacity]})
    assert checked(document).lower == checked(document).upper


def test_an_edge_inside_its_capacity_is_fused_at_an_exact_optimum(tmp_path):
    values = gr.NodeData.from_arrays(None, np.array([1.0, 1.5]), [0, 1])
    solution = solved(gr.MeanLoss(values) + 1.0 * gr.TotalVariation(nx.path_graph(2), gr.L1()), gap=1e-12)
    solution.prove(tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    document["w"] = [["5p-2"], ["5p-2"]]
    document["dual"] = {"prices": [[["1p-2"], ["-1p-2"]]], "flows": [[["-1p-2"]]]}
    document["claims"] = [
        {"says": "bounds", "lower": "1p-4", "upper": "1p-4"},
        {"says": "fused", "block": 0, "edge": 0},
    ]
    assert "are equal" in str(checked(document))


def test_a_split_edge(tmp_path):
    """No optimum has z = 0: with the edge contracted, even the dual bound lies above P(w)."""
    values = gr.NodeData.from_arrays(None, np.array([0.0, 4.0]), [0, 1])
    solution = solved(gr.MeanLoss(values) + 1.0 * gr.TotalVariation(nx.path_graph(2), gr.L1()))
    solution.prove(tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    # contracted: w = 2 at both, P = 4; prices 2, -2, and the flow -2 beyond its capacity 1
    other = {"prices": [[["1p1"], ["-1p1"]]], "flows": [[["-1p1"]]]}
    claim = {"says": "split", "block": 0, "edge": 0, "dual": other}
    assert "differ" in str(checked(document | {"claims": [*document["claims"], claim]}))
    small = {"prices": [[["1"], ["-1"]]], "flows": [[["-1"]]]}
    with pytest.raises(NotProvedError, match="equality is not excluded"):
        checked(document | {"claims": [*document["claims"], claim | {"dual": small}]})


def test_an_infimum_that_is_not_attained(tmp_path):
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), [1, 1, 0, 0]
    model = gr.LogisticLoss(gr.NodeData.from_arrays(X, y, [0, 0, 1, 1])) + gr.TotalVariation(nx.path_graph(2), gr.L2())
    solution = solved(model)
    assert solution.status == "unattained"
    solution.prove(tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    claim = {"says": "unattained", "direction": [["1"], ["1"]]}
    assert "no minimum is attained" in str(checked(document | {"claims": [*document["claims"], claim]}))
    for direction in ([["-1"], ["-1"]], [["1"], ["1p1"]], [["0"], ["0"]]):
        with pytest.raises(NotProvedError, match="grows along"):
            checked(document | {"claims": [*document["claims"], claim | {"direction": direction}]})


# ---- the judge -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [3, 8, 20])
def test_exact_values_bound_the_optimum(seed):
    solution = solved(random_problem(seed).model)
    certificate = solution.certificate
    upper, lower = exact_primal(solution.form, certificate.w), exact_dual(solution.form, certificate.dual_point)
    assert lower is not None
    assert lower <= upper
    assert float(upper) == pytest.approx(certificate.primal, rel=1e-9)
    assert float(lower) == pytest.approx(certificate.dual, rel=1e-6, abs=1e-6 * abs(certificate.primal))


def test_the_hash_names_the_problem(tmp_path):
    def problem(strength=0.1, seed=0, order=range(4)):
        graph = nx.Graph()
        graph.add_nodes_from(order)
        graph.add_edges_from([(2, 1), (0, 1), (3, 2)] if order != range(4) else CHAIN.edges)
        return gr.Problem(gr.SquaredLoss(data(seed=seed)) + strength * gr.TotalVariation(graph, gr.L1()))

    assert problem().hash() == problem(order=(3, 1, 0, 2)).hash()
    assert len({problem().hash(), problem(0.2).hash(), problem(seed=1).hash()}) == 3

    place, strength = str(tmp_path / "proof.json"), gr.Parameter(0.1)
    problem().solve().prove(place)
    varied = problem(strength)
    assert verify.main([place, "--model", varied.hash()]) == 0
    strength.value = 0.2
    assert verify.main([place, "--model", varied.hash()]) == 1


def test_the_hash_of_what_no_proof_states_is_refused_by_name():
    graph = gr.TotalVariation(CHAIN, gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 3), name="cubes"))
    with pytest.raises(ProofError, match="cubes cannot be stated in a proof"):
        gr.Problem(gr.SquaredLoss(data()) + graph).hash()


# ---- terms of the user's own -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ElasticNet(gr.Penalty):
    """phi(z) = ||z||_1 + ridge/2 ||z||^2 of each row."""

    ridge: float = 0.5

    def value(self, z):
        return np.abs(z).sum(axis=1) + self.ridge / 2 * (z**2).sum(axis=1)

    def prox(self, v, step):
        t = np.asarray(step, dtype=float).reshape(-1, 1)
        return np.sign(v) * np.maximum(np.abs(v) - t, 0) / (1 + t * self.ridge)

    def conjugate(self, u):
        return (np.maximum(np.abs(u) - 1, 0) ** 2).sum(axis=1) / (2 * self.ridge)

    def cvxpy(self, Z):
        import cvxpy as cp

        return cp.sum(cp.abs(Z), axis=1) + self.ridge / 2 * cp.sum(cp.square(Z), axis=1)

    def parts(self):
        return [(1.0, gr.L1()), (self.ridge, gr.SquaredL2())]


class WrongParts(ElasticNet):
    def parts(self):
        return [(1.0, gr.L1()), (2 * self.ridge, gr.SquaredL2())]


def test_a_composition_is_proved_as_its_parts(tmp_path):
    solution = solved(gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(CHAIN, ElasticNet()))
    proved = solution.prove(tmp_path / "proof.json")
    assert float(proved.upper - proved.lower) <= 10 * solution.certificate.gap
    assert "L1" in str(check((tmp_path / "proof.json").read_bytes()))


OF_CVXPY = {  # functions of CVXPY, and what each of them is
    "2 l1": (2, lambda z: 2 * cp.norm1(z), [(2, gr.L1())]),
    "0.25 max": (2, lambda z: 0.25 * cp.norm_inf(z), [(0.25, gr.LInf())]),
    "squares": (2, lambda z: cp.sum(cp.square(z)), [(2, gr.SquaredL2())]),
    "half squares": (2, lambda z: cp.sum_squares(z) / 2, [(1, gr.SquaredL2())]),
    "huber of the norm": (2, lambda z: cp.huber(cp.norm(z), 0.5), [(2, gr.HuberNorm(0.5))]),
    "huber of a number": (1, lambda z: cp.sum(cp.huber(z, 0.5)) / 2, [(1, gr.HuberNorm(0.5))]),
    "elastic net": (2, lambda z: cp.norm1(z) + cp.sum_squares(z), [(1, gr.L1()), (2, gr.SquaredL2())]),
    "norm and square": (2, lambda z: 2 * cp.norm(z) + cp.sum_squares(z), [(2, gr.L2()), (2, gr.SquaredL2())]),
    "sparse group": (2, lambda z: cp.norm1(z) + 2 * cp.norm(z), [(1, gr.L1()), (2, gr.L2())]),
    "two norms": (2, lambda z: cp.norm_inf(z) + 0.5 * cp.norm1(z), [(0.5, gr.L1()), (1, gr.LInf())]),
}


@pytest.mark.parametrize("name", OF_CVXPY)
def test_a_function_of_cvxpy_that_is_a_sum_of_ours_is_proved_as_that(name, tmp_path):
    k, function, parts = OF_CVXPY[name]
    loss = gr.SquaredLoss(data(d=k))
    ours = gr.Problem(loss + sum(0.5 * by * gr.TotalVariation(CHAIN, phi) for by, phi in parts))
    problem = gr.Problem(loss + 0.5 * gr.TotalVariation(CHAIN, gr.Penalty.from_cvxpy(function)))
    assert problem.hash() == ours.hash()
    solution = problem.solve(gap=1e-8)
    proved = solution.prove(tmp_path / "proof.json")
    assert proved.hash == ours.hash()
    assert float(proved.upper - proved.lower) <= 10 * solution.certificate.gap
    check((tmp_path / "proof.json").read_bytes())


@pytest.mark.parametrize(
    "function",
    [
        lambda z: cp.sum(cp.huber(z, 0.5)),  # of each number, and HuberNorm is of their norm
        lambda z: cp.square(cp.norm1(z)),  # no square of the Euclidean norm
        lambda z: cp.square(cp.norm_inf(z)),
        lambda z: cp.norm1(cp.multiply([1, 2], z)),  # no multiple of the l1 norm
        lambda z: cp.sum_squares(z) + cp.norm1(cp.multiply([1, 2], z)),
        lambda z: cp.maximum(cp.norm(z) - 0.1, 0),
        lambda z: cp.maximum(cp.sum_squares(z), 2 * cp.norm(z)),  # a kink where Huber has none
        lambda z: cp.norm1(z) + cp.norm(z, 3),
    ],
)
def test_a_function_of_cvxpy_that_is_no_such_sum_is_refused_with_the_way_out(function, tmp_path):
    problem = gr.Problem(gr.SquaredLoss(data()) + 0.5 * gr.TotalVariation(CHAIN, gr.Penalty.from_cvxpy(function)))
    with pytest.raises(ProofError, match=r"cannot be stated.*gr\.certify\(problem\.compile\(\)\.cvxpy\)\.prove"):
        problem.solve().prove(tmp_path / "proof.json")


def test_what_cannot_be_stated_is_refused(tmp_path):
    import cvxpy as cp

    norm = gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 3))
    solution = solved(gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(CHAIN, norm))
    with pytest.raises(ProofError, match=r"TotalVariation.*cannot be stated.*`parts`"):
        solution.prove(tmp_path / "proof.json")
    loss = gr.Loss.from_cvxpy(lambda x, y: cp.logistic(2 * (x - y)) - (x - y), data(), name="log cosh")
    problem = gr.Problem(loss + 0.1 * gr.TotalVariation(CHAIN, gr.L1()))
    answer = problem.solve()
    with pytest.raises(
        ProofError, match=r"log cosh cannot .* no `statement\(\)`; gr\.certify\(problem\.compile\(\)\.cvxpy\)\.prove"
    ):
        answer.prove(tmp_path / "proof.json")
    bounds = gr.certify(problem.compile().cvxpy)  # which is what the message says
    bounds.prove(tmp_path / "conic.json")
    assert bounds.lower - 1e-9 <= answer.objective <= bounds.upper + answer.certificate.gap
    wrong = solved(gr.SquaredLoss(data()) + 0.001 * gr.TotalVariation(CHAIN, WrongParts()))
    with pytest.raises(ProofError, match="does not say what `value` computes"):
        wrong.prove(tmp_path / "proof.json")
    with pytest.raises(ProofError, match="no claim 'merged'; there are bounds, near, fused, split"):
        solved(gr.SquaredLoss(data())).prove(tmp_path / "proof.json", ["merged"])


# ---- false ones ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(48))
def test_a_changed_digit_is_no_proof(proof, seed):
    with pytest.raises(NotProvedError) as caught:
        checked(tampered(proof, seed))
    assert "balance" in str(caught.value) or "domain" in str(caught.value), caught.value


@pytest.mark.parametrize(("kind", "seed"), thinned(KINDS, range(3), every=3))
def test_true_claims_are_proved_and_false_ones_refused(kind, seed, tmp_path):
    found = outcome(case(kind, seed), tmp_path / "proof.json")
    assert found.proved
    assert found.refused
    assert found.named
    assert found.forgery_refused


def steps(penalty=None, gap=1e-6):
    """Two clusters, {a, b} and {c, d}, whose middle edge is split."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(40, 1)), rng.normal(size=40)
    data = gr.NodeData.from_arrays(X, np.repeat([0, 5], 20) + 0.1 * noise, np.repeat([*"abcd"], 10), intercept=True)
    graph = nx.path_graph([*"abcd"])
    return solved(gr.SquaredLoss(data) + 0.5 * gr.TotalVariation(graph, penalty or gr.L1()), gap)


def test_a_proof_names_what_it_claims_and_what_it_looked_for_in_vain(tmp_path):
    path = tmp_path / "proof.json"
    proved = steps().prove(path, ["fused", "split", "held"])
    pairs = "fused: 2 of 3: ('a', 'b'), ('c', 'd')", "split: 1 of 3: ('b', 'c')"
    assert proved.statements == (*pairs, "held: none of 0")
    assert str(proved).endswith("\n  ".join(["", *proved.statements]))
    assert "held: none of 0" in proved._repr_html_()
    lengths = steps(gr.L2()).prove(path, ["fused", ("near", "a", "b", 0.1234)])
    assert re.match(r"fused: none of 3: there is no exact optimum \(an L2 ", lengths.statements[0])
    assert lengths.statements[1] == "near: 1 of 3: ('a', 'b'); at most 0.124 apart in the norm of their penalty"
    assert steps().prove(path).statements == ()


def test_a_distance_that_says_nothing_is_not_claimed(tmp_path):
    """The flow of the split edge has a little slack in an answer to a gap, and so proves a distance of millions."""
    solution, path = steps(), tmp_path / "proof.json"
    near = solution.prove(path, "near")
    assert near.claims == ("bounds", "near", "near")
    assert near.statements[0].startswith("near: 2 of 3: ('a', 'b'), ('c', 'd'); at most ")
    assert solution.prove(path, [("near", "b", "c", 1e9)]).claims == ("bounds", "near")  # whoever insists gets it
    more = solution.prove(path, ["near", "fused"])
    assert more.claims == ("bounds", "fused", "fused")
    assert more.statements[0].startswith("near: none of 3 so near that it is negligible and nothing more is proved; ")
    for penalty, gap in ((gr.L1(), 1e-6), (gr.L2(), 1e-6), (gr.LInf(), 1e-4)):  # what is near for clusters is it here
        solution = steps(penalty, gap)
        assert solution.clusters().edges["state"].tolist() == ["near", "split", "near"]
        assert solution.prove(path, "near").statements[0].startswith("near: 2 of 3: ('a', 'b'), ('c', 'd'); ")


def test_claims_on_what_is_no_edge(tmp_path):
    solution = solved(gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(CHAIN, gr.L1()))
    for claim, message in (
        (("near", 0, 3), "no norm without a centre of the edge 0 - 3"),
        (("fused", 0), "no norm without a centre at the node 0"),
        (("split", 0, "nowhere"), "'nowhere' is no node"),
        (("near", 0, "nowhere"), "'nowhere' is no node"),
        (("near", 0, 1, -1.0), "a distance is a positive number, not -1.0"),
        (("fused", 0, 1, 2), "two ends"),
        ("unattained", "along no direction that was found"),
    ):
        with pytest.raises(ProofError, match=message):
            solution.prove(tmp_path / "proof.json", [claim])


def test_why_an_edge_is_not_fused(tmp_path):
    solution = solved(gr.SquaredLoss(data()) + 0.1 * gr.TotalVariation(CHAIN, gr.L2()))
    with pytest.raises(ProofError, match=r"fused is not proved of the edge 0 - 1: there is no exact optimum \(an L2"):
        solution.prove(tmp_path / "proof.json", [("fused", 0, 1)])


def test_bounds_and_claims_that_are_not_proved(proof):
    bounds, near = proof["claims"][0], proof["claims"][1]
    gap = verify.number(bounds["upper"]) - verify.number(bounds["lower"])
    false = [
        bounds | {"lower": text(verify.number(bounds["lower"]) + 2 * gap)},
        bounds | {"upper": text(verify.number(bounds["upper"]) - 2 * gap)},
        near | {"distance": text(verify.number(near["distance"]) / 2)},
        {"says": "fused", "block": near["block"], "edge": near["edge"]},
        {"says": "split", "block": near["block"], "edge": near["edge"], "dual": proof["dual"]},
        {"says": "unattained", "direction": proof["w"]},
    ]
    for claim in false:
        with pytest.raises(NotProvedError, match="claim"):
            checked(proof | {"claims": [bounds, claim]})


def test_another_target_or_w_moves_the_bounds(proof):
    target, w = json.loads(json.dumps(proof)), json.loads(json.dumps(proof))
    target["model"]["samples"][0]["y"][0] = "7p3"
    w["w"][0][0] = text(verify.number(w["w"][0][0]) + 1)
    for document in (target, w):
        with pytest.raises(NotProvedError, match="what is proved is"):
            checked(document)


def test_another_model_has_another_hash(proof):
    document = json.loads(json.dumps(proof))
    document["model"]["labels"][0] = "somebody else"
    assert checked(document).hash != checked(proof).hash


# ---- the second route ------------------------------------------------------------------------------------------------
def second_route(path):
    script = EXAMPLES / "hash_from_files.py"
    run = subprocess.run([sys.executable, str(script), str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


MODELS = {
    "the example": "",
    "logistic": '[loss]\nfamily = "LogisticLoss"\nstrength = 0.3\nscale = "sum"\n',
    "poisson": '[loss]\nfamily = "PoissonLoss"\nscale = 0.1\n',
    "means": '[loss]\nfamily = "MeanLoss"\n',
}


@pytest.mark.parametrize("name", MODELS)
def test_two_routes_give_one_hash(name, tmp_path):
    from graphreg.cli.example import write

    write(tmp_path)
    text = (tmp_path / "model.toml").read_text()
    if MODELS[name]:
        text = re.sub(r"\[loss\]\n.*?\n\n", MODELS[name] + "\n", text, flags=re.DOTALL)
    if name == "means":
        text = re.sub(r"features.*\nintercept.*\n", "", text)
    if name == "poisson":
        text = text.replace('target = "level"', 'target = "days"\nweights = "half"\nderive = { half = "days / 3" }')
    if name == "logistic":
        text = text.replace('target = "level"', 'target = "days"\nkeep = { days = [2, 3] }')
        table = (tmp_path / "stations.csv").read_text()
        (tmp_path / "stations.csv").write_text(re.sub(r",2,(?=[^,]*$)", ",0,", table, flags=re.M).replace(",3,", ",1,"))
        text = text.replace("[2, 3]", "[0, 1]")
    (tmp_path / "model.toml").write_text(text)
    assert gr.read_model(tmp_path / "model.toml").problem.hash() == second_route(tmp_path / "model.toml")


# ---- rows of any kind ------------------------------------------------------------------------------------------------
def trend(order=2, n=12, lam=1.0, penalty=None):
    y = np.abs(np.arange(n) - 5.0) / 3 + np.random.default_rng(7).normal(size=n).round(2) / 5
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, y, range(n)))
    return solved(fit + lam * (penalty or gr.L1())(gr.w.along(range(n), order)), gap=1e-9)


@pytest.mark.parametrize("seed", thinned(range(24), every=5))
def test_random_rows_are_proved(seed, tmp_path):
    """Of every kind, under every penalty and constraint, judged by P at other points; on hundreds by `make proofs`."""
    found = of_rows(seed, tmp_path / "proof.json", True)
    assert found.outcome == "proved", found.note
    assert found.ratio == pytest.approx(1.0, rel=1e-3) or found.ratio < 1.0


def test_rows_that_hold_are_proved_and_knots_are_not(tmp_path):
    solution = trend()
    proved = solution.prove(tmp_path / "proof.json", ["held", "near"])
    proof = check((tmp_path / "proof.json").read_bytes())
    assert proof.hash == proved.hash == model_hash(solution.form)
    assert proof.gap == 0
    second = np.abs(np.diff(solution.coef[:, 0], 2))
    held = [int(said.split()[1]) for said in proof.said if said.endswith("holds at every optimum")]
    assert 0 < len(held) < len(second)
    assert held == np.flatnonzero(second < 1e-6).tolist()
    assert [claim for claim in proved.claims if claim == "held"] == ["held"] * len(held)


def test_rows_are_claimed_by_their_names(tmp_path):
    solution, path = trend(), tmp_path / "proof.json"
    second = np.abs(np.diff(solution.coef[:, 0], 2))
    flat, knot = int(np.argmin(second)), int(np.argmax(second))
    claims = [("held", *range(flat, flat + 3)), ("near", tuple(range(flat, flat + 3)), 1e-3)]
    assert solution.prove(path, claims).claims == ("bounds", "held", "near")
    assert f"row {flat} of edges[0]" in check(path.read_bytes()).said[1]
    name = tuple(range(knot, knot + 3))
    for claim, why in (
        (("held", *name), f"held is not proved of the row {name}: its flow is at its capacity"),
        (("near", name, 1e-3), f"near is not proved of the row {name}: "),
        (("held", 0, 7, 8), "held: an edge has two ends, not"),
        (("held", "x"), "held: 'x' is no node, nor a row of a norm"),
        (("split", name), f"split: {name} is no node, nor a row of a norm"),
        (("fused", 0, 1), "fused: there is no norm without a centre of the edge 0 - 1"),
    ):
        with pytest.raises(ProofError, match=re.escape(why)):
            solution.prove(path, [claim])


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf()])
def test_norms_of_one_number_fuse_as_its_absolute_value_does(penalty, tmp_path):
    """They are the same model; but for the root of L2, which proofs round: then L1 is named."""
    file = tmp_path / "proof.json"
    for y, said in (([1.0, 1.4, 1.3, 4.0], "fused: 1 of 3"), ([1.0, 1.2, 1.1, 4.0, 4.1, 4.3, 0.2], "fused: 4 of 6")):
        model = gr.MeanLoss(gr.NodeData.from_arrays(None, np.array(y), range(len(y))))
        solution = solved(model + 0.3 * gr.TotalVariation(nx.path_graph(len(y)), penalty), gap=1e-9)
        found = str(solution.prove(file, ["fused"]))
        rounded = penalty == gr.L2() and len(y) > 4
        assert ("gr.L1() is the same of one number" if rounded else said) in found
        assert len([line for line in check(file.read_bytes()).said if "are equal" in line]) == (
            0 if rounded else int(said.split()[1])
        )


def test_an_optimum_that_is_not_rational_is_not_looked_for(tmp_path):
    values = gr.NodeData.from_arrays(None, np.array([[0.0, 0.0], [1.0, 2.0], [7.0, 3.0]]), range(3))
    solution = solved(gr.MeanLoss(values) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2()), gap=1e-9)
    with pytest.raises(ProofError, match="a difference that is not 0 has no rational optimum"):
        solution.prove(tmp_path / "proof.json", [("fused", 0, 1)])


def test_equations_that_follow_from_others_are_no_hindrance(tmp_path):
    """All rows of a Laplacian and every row twice: of flows that hold some are free."""
    y = np.random.default_rng(0).normal(size=6)
    rows = gr.w.across(nx.cycle_graph(6), 2)
    model = gr.MeanLoss(gr.NodeData.from_arrays(None, y, range(6))) + gr.L1()(rows) + 9.0 * gr.L1()(2.0 * rows)
    solution = solved(model, gap=1e-9)
    solution.prove(tmp_path / "proof.json", ["held"])
    assert len(check((tmp_path / "proof.json").read_bytes()).said) == 13
    np.testing.assert_allclose(solution.coef, y.mean(), atol=1e-6)


def test_too_many_coupled_rows_are_not_solved_for(tmp_path, monkeypatch):
    monkeypatch.setattr("graphreg.certificate.proof.attempts.BY_FLINT", 12)
    monkeypatch.setattr("graphreg.certificate.proof.attempts.COUPLED", 12)
    with pytest.raises(ProofError, match=r"12 groups of coordinates are coupled by \d rows"):
        trend().prove(tmp_path / "proof.json", [("held", 0, 1, 2)])


def test_rows_that_nothing_tied_can_balance_are_proved_all_the_same(tmp_path):
    """Where the optimum that rows suggest is far out of range, as entries of 1e-200 make it."""
    for K in ([[1.0, 1e-200], [1e-200, 0.0]], [[1.0, 0.0], [1.0, 1e-90]]):
        fit = gr.MeanLoss(gr.NodeData.from_arrays(None, [0.3, 1.0], [0, 1]))
        solution = solved(fit + 2.0 * gr.L1()(gr.Rows(np.array(K), 1)))
        proved = solution.prove(tmp_path / "proof.json", "held")
        assert solution.certificate.dual - 1e-12 <= float(proved.lower) <= float(proved.upper)
        assert len(check((tmp_path / "proof.json").read_bytes()).said) == 1


def test_a_file_has_the_rows_as_they_are_stored(tmp_path):
    solution = solved(
        gr.MeanLoss(gr.NodeData.from_arrays(None, np.eye(3)[:, :2], [*"abc"]))
        + 0.5 * gr.LInf()((gr.w.at("a") - gr.w.at("c") @ np.array([[0.5, 0.0], [0.25, 1.0]]) - 0.125).weighted(3.0))
    )
    solution.prove(tmp_path / "proof.json")
    (block,) = json.loads((tmp_path / "proof.json").read_text())["model"]["edges"]
    cells = [[[0, 0, "1"], [2, 0, "-1p-1"], [2, 1, "-1p-2"]], [[0, 1, "1"], [2, 1, "-1"]]]
    named = {"penalty": "LInf", "parameter": None, "strength": "1p-1", "k": 2, "rows": [cells]}
    assert block == named | {"weight": ["3"], "center": [["1p-3", "1p-3"]]}


LOSSES_OF_ROWS = {
    "squared": gr.SquaredLoss,
    "huber": lambda rows, y: gr.HuberLoss(rows, y, delta=0.5),
    "quantile": lambda rows, y: gr.QuantileLoss(rows, y, tau=0.4),
    "expectile": lambda rows, y: gr.ExpectileLoss(rows, y, tau=0.3),
    "squared_epsilon": lambda rows, y: gr.SquaredEpsilonInsensitiveLoss(rows, y, epsilon=0.3),
    "gamma": lambda rows, y: gr.GammaLoss(0.1 * rows, np.abs(y) + 0.1) + 0.1 * gr.SquaredL2()(gr.w),
    "logistic": lambda rows, y: gr.LogisticLoss(rows, (y > 0).astype(int)) + 0.1 * gr.SquaredL2()(gr.w),
}


@pytest.mark.parametrize("name", LOSSES_OF_ROWS)
def test_losses_of_rows_are_proved(name, tmp_path):
    rng = np.random.default_rng(3)
    A, y = rng.normal(size=(8, 12)).round(2), rng.normal(size=8)
    rows = (A @ gr.w.at(range(12)) - 0.5).weighted(rng.uniform(0.5, 2.0, size=8))
    solution = solved(LOSSES_OF_ROWS[name](rows, y) + 0.2 * gr.TotalVariation(nx.path_graph(12), gr.L1()), gap=1e-9)
    proved = solution.prove(tmp_path / "proof.json", ["near"])
    proof = check((tmp_path / "proof.json").read_bytes())
    assert proof.hash == proved.hash
    assert 0 <= float(proved.upper - proved.lower) <= 1.001 * solution.certificate.gap
    (block,) = json.loads((tmp_path / "proof.json").read_text())["model"]["samples"]
    factor = 0.1 if name == "gamma" else 1.0
    assert [verify.double(x) for _, _, x in block["rows"][0][0]] == (factor * A[0]).tolist()
    assert block["rule"] == "sum"


def test_the_second_loss_of_a_node_is_stated_as_rows(tmp_path):
    """With its scales, which are those of a mean."""
    rng = np.random.default_rng(4)
    one, two = (
        gr.NodeData.from_arrays([[x] for x in [*rng.normal(size=7), 0.0]], rng.normal(size=8), [0, 0, 1, 1, 1, 2, 3, 3])
        for _ in "ab"
    )
    model = gr.SquaredLoss(one) + gr.HuberLoss(two, delta=0.5) + 0.3 * gr.TotalVariation(CHAIN, gr.L1())
    solution = solved(model, gap=1e-9)
    proved = solution.prove(tmp_path / "proof.json", ["near"])
    assert float(proved.upper) == pytest.approx(solution.objective, rel=1e-12)
    assert check((tmp_path / "proof.json").read_bytes()).said[1:]


def test_an_answer_far_from_the_optimum_blames_no_term(tmp_path):
    """The exact optimum is worth less than the answer, which is what answers far off are."""
    data = gr.NodeData.from_arrays([[1.0], [1.0], [2.0]], [1.0, 3.0, 5.0], list("abc"))
    edges = gr.TotalVariation(nx.path_graph(list("abc")), gr.SquaredL2())
    problem = gr.Problem(gr.SquaredLoss(data) + edges)
    proved = problem.certify(np.full((3, 1), 9.0)).prove(tmp_path / "proof.json", ["fused"])
    assert proved.lower <= proved.upper < problem.value(np.full((3, 1), 9.0))


def test_nodes_that_nothing_decides_do_not_hinder_an_exact_optimum(tmp_path):
    samples = {"a": ([[1.0], [2.0]], [1.1, 1.9]), "b": ([[1.0], [3.0]], [0.9, 3.2]), "c": ([[2.0]], [-2.0])}
    for more in ({}, {"z": ([[0.0], [0.0]], [1.0, 2.0])}):
        graph = nx.path_graph(["a", "b", "c"])
        graph.add_nodes_from(["alone", *more])
        loss = gr.SquaredLoss(gr.NodeData.from_dict(samples | more))
        solution = gr.Problem(loss + 0.2 * gr.TotalVariation(graph, gr.L1())).solve()
        proved = solution.prove(tmp_path / "proof.json", [("fused", "a", "b")], force=True)
        assert "a" in str(proved)
