"""Where the papers print something else than what holds, and how either is reached."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from ...tables import Table

GTV, FUSED = "GTV minimisation", "graph-fused M-estimation"
CLUSTERS, CONSENSUS = "known clusters", "decentralised inference"


class Place(NamedTuple):
    """``as_printed`` and ``right`` are what to write for either; empty where nothing of the library computes it.
    ``unnamed`` says why nothing computes what is printed."""

    paper: str
    place: str
    print: str
    holds: str
    as_printed: str = ""
    right: str = ""
    unnamed: str = ""


P = "gr.theory.printed."
PLACES = (
    Place(
        GTV,
        "(25)",
        "w_tail - w_head in c times the subdifferential of phi* at u/c, c = lambda A_e",
        "without the factor c, which makes a difference for all but norms",
        f"{P}edge_residuals(problem, w, flows)",
        "certificate.residuals",
    ),
    Place(
        GTV,
        "(34)",
        "below any tolerance after finitely many iterations",
        "+inf at all of them where a node has fewer samples than parameters; bounded once the flows are repaired",
        f"{P}gap(problem, w, flows)",
        "solution.certificate.gap",
    ),
    Place(
        GTV,
        "Algorithm 1",
        "tau_i = 1/|N_i|, sigma_e = 1/2",
        "as printed, but for nodes without edges, and slow: the balance of the steps matters",
        "gr.PrimalDual(balance=1, relaxation=1)",
        "gr.PrimalDual()",
    ),
    Place(
        GTV,
        "(35)",
        "for every subset A of C without i_0",
        "for every one but the empty set, for which it says 0 < 0",
        right="gr.theory.well_connected(graph, demand)",
        unnamed="as printed no cluster is well-connected: the answer would be no for every graph",
    ),
    Place(
        GTV,
        "(36)",
        "at most 2 |dC| lambda / alpha apart",
        "half of that",
        "gr.theory.recovery(problem, clusters).bound",
        "gr.theory.recovery(problem, clusters).sharp",
    ),
    Place(
        GTV,
        "(63)",
        "u = sum_i s_i sum_r a_r u_r",
        "s_i / ||s_i|| in place of s_i",
        unnamed="a flow within the proof of Theorem 2: nothing that the paper reports is computed from it",
    ),
    Place(
        FUSED,
        "(6), Theorem 3.1",
        "lambda = |V|^(-1/2) R*{(D^+)'Psi}, and kappa_0",
        "R*{(D^+)'Psi} / |V| in (4), |V| lambda^2 in (6), and kappa_S^2",
        f"{P}error_bound(problem, truth)",
        "gr.theory.error_bound(problem, truth)",
    ),
    Place(
        FUSED,
        "after Condition 3",
        "kappa_T >= 1 / (2 min(sqrt d, sqrt |T|))",
        "divided by sqrt p for the l1 norm of p features",
        f"{P}compatibility_bound(graph, edges)",
        "gr.theory.compatibility_factor(graph, edges, features=p)",
    ),
    Place(
        FUSED,
        "(8)",
        "p log(|E| / xi), for the l1 norm, too",
        "log(p |E| / xi) for the l1 norm",
        unnamed="a rate: it has a constant C_lambda, of which only the existence is stated",
    ),
    Place(
        FUSED,
        "(13)",
        "Omega_u = (n_u H_u)^-1",
        "H^-1 S H^-1 / n_u, unless the noise has unit variance",
        "gr.inference.edge_tests(loss, graph, 'model')",
        "gr.inference.edge_tests(loss, graph)",
    ),
    Place(
        FUSED,
        "(17)",
        "the gradient of M_i, for (16) with its factor 1/|V|",
        "that of M_i / |V|",
        "gr.FedADMM(as_printed='(17)')",
        "gr.FedADMM()",
    ),
    Place(
        FUSED,
        "Theorem 4.1, step",
        "eta(t) = kappa / t",
        "kappa / (t + kappa (L_i + rho deg_i)), the step of (20) to which the proof belongs",
        "gr.FedADMM(as_printed='kappa/t')",
        "gr.FedADMM(kappa=kappa)",
    ),
    Place(
        FUSED,
        "Algorithm 1, output",
        "the mean of theta(0), ..., theta(T - 1)",
        "true, but slower than the mean of the last rounds, and than the last one with all samples",
        "gr.FedADMM(average='printed')",
        "gr.FedADMM()",
    ),
    Place(
        FUSED,
        "Theorem 4.1, bound",
        "2 kappa^2 C_psi log T / T",
        "4 kappa^2 C_psi by its own algebra",
        unnamed="C_psi is a supremum over a set of parameters that the theorem assumes and does not give",
    ),
    Place(
        CLUSTERS,
        "(2.2)",
        "thetabar = sum_j alpha_j thetabar_j / sum_j alpha_j",
        "its second expression, with the weights alpha_j Gamma_j",
        f"{P}network_mean(problem, theta)",
        "solution.latent",
    ),
    Place(
        CLUSTERS,
        "Proposition 3.2",
        "(1 - p_0) p_j (1 - p_j) T rounds within cluster j",
        "(1 - p_0)^2 p_j (1 - p_j) T with equal gamma_i, else (1 - p_0) p_j T",
        f"{P}communication_rounds(p_global, p_cluster, rounds)",
        "solution.ledger",
    ),
    Place(
        CLUSTERS,
        "(4.1)",
        "no within-cluster part where xi_0 = 1",
        "biased without gamma_i tau_j (1 - alpha_j)/p_0 [(theta_i - thetabar_j) - (x_i - xbar_j)] there",
        "gr.AsyncAL2SGD(as_printed='(4.1)')",
        "gr.AsyncAL2SGD()",
    ),
    Place(
        CLUSTERS,
        "Algorithm 2, z",
        "z moves by b_2/n",
        "by b_2/eta",
        "gr.AsyncAL2SGD(as_printed='b2/n')",
        "gr.AsyncAL2SGD()",
    ),
    Place(
        CLUSTERS,
        "Algorithm 2, input",
        "1 < a_0, a_1 < 1",
        "0 < a_1, a_2 < 1",
        right="gr.AsyncAL2SGD(a1=a1, a2=a2)",
        unnamed="no number is above 1 and below 1, and a_0 is used nowhere",
    ),
    Place(
        CLUSTERS,
        "Corollary 4.4",
        "p_0 (1 - p_0) T rounds between clusters",
        "p_0 T, as theta moves in every round, and rho T more, to refresh x",
        right="solution.ledger",
        unnamed="an order without its constants: no number follows from it",
    ),
    Place(
        CLUSTERS,
        "section 5, likelihood",
        "1/sigma_i^2, and a norm",
        "1/(2 sigma_i^2), and its square",
        f"{P}likelihood(problem, theta)",
        "problem.value(w)",
    ),
    Place(
        CLUSTERS,
        "Proposition 5.3",
        "in general another estimator than (5.2)",
        "the same one: (5.2) is the BLUP",
        unnamed="a statement on two estimators, which are one: there is no other to be computed",
    ),
    Place(
        CLUSTERS,
        "appendix A.1",
        "sum_i (theta_i - w_j) + lambda_j (w_j - wbar)",
        "sum_i gamma_i (w_j - theta_i) + lambda_j (w_j - wbar)",
        f"{P}cluster_gradients(problem, w)",
        "solution.certificate.per_node()",
    ),
    Place(
        CLUSTERS,
        "appendix A.12",
        "the weights (n - 1)/2n of y_1 and (n + 1)/2n of the others",
        "the other way round",
        f"{P}james_stein_weights(n)",
        "gr.inference.james_stein",
    ),
    Place(
        CLUSTERS,
        "Table 1",
        "squared errors",
        "their roots: norms",
        unnamed="the heading of a table of results: its numbers are right under another name",
    ),
    Place(
        CONSENSUS,
        "Table 1, star",
        "exponent 2, K = o(T^(1/13))",
        "1, K = o(T^(1/7)): the gap of a star is 1/(2 K)",
        f"{P}sparseness_exponent('star')",
        "gr.theory.sparseness_exponent(family, sizes)",
    ),
    Place(
        CONSENSUS,
        "(12), and S after it",
        "p_k for w_k, f_m for f_k, a missing transpose",
        "w_k, f_k, and the transpose",
        unnamed="letters that the slides do not define: there is nothing that they say as printed",
    ),
)


def differences() -> Table:
    """Every place of the four papers that prints something else than what holds, as far as it is known.

    Returns
    -------
    Table
        One row per place: paper, place (an equation, a theorem), print, holds; as_printed and right, what to write for
        what is printed and for what holds, empty where nothing of the library computes it; and unnamed, why nothing
        computes what is printed.

    Examples
    --------
    >>> table = gr.theory.printed.differences()
    >>> table.loc[table["place"] == "(4.1)", "as_printed"].item()
    "gr.AsyncAL2SGD(as_printed='(4.1)')"
    """
    frame = pd.DataFrame(list(PLACES), columns=pd.Index(Place._fields))
    title = "where the papers print something else than what holds"
    return Table.of(frame, title, ("what was found so far, by computing it",))
