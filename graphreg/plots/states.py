"""What the pictures of a graph say of its edges: one state per pair of nodes, over all terms that join them."""

from __future__ import annotations

from typing import Any

from ..running import Solution

STATES: dict[str, tuple[Any, str, float]] = {  # how edges are drawn: line style, colour, width
    "fused": ("-", "0.2", 2.2),
    "near": ("-", "0.6", 1.4),
    "split": ("--", "tab:red", 1.4),
    "undecided": (":", "0.4", 1.4),
    "fused on some coordinates": ("-.", "tab:blue", 1.4),
}
FIRST = ("split", "near", "fused", "fused on some coordinates", "undecided")  # of several terms the first one counts


def edge_states(solution: Solution, prove: bool) -> dict[tuple[int, int], str]:
    """The state of each pair of nodes (tail, head), by their positions; latent nodes come last."""
    form, clusters = solution.form, solution.clusters(prove)
    labels = clusters.labels
    number = [labels[label] for label in form.space.index]
    said: dict[tuple[int, int], set[str]] = {}
    table = iter(clusters.edges["state"].tolist())  # in the order of the edge blocks
    for edge in form.edges:
        if edge.ground:
            continue
        for tail, head in zip(edge.tail.tolist(), edge.head.tolist(), strict=True):
            state = next(table)
            whole = edge.features is None or max(tail, head) >= len(number) or number[tail] == number[head]
            said.setdefault((tail, head), set()).add(
                "fused on some coordinates" if state in ("near", "fused") and not whole else state
            )
    return {pair: next(state for state in FIRST if state in found) for pair, found in said.items()}


def boundary(solution: Solution, pairs: list[tuple[int, int]], prove: bool) -> list[str]:
    """What stands between the two nodes of each pair: "between clusters"; "undecided", where that is all that parts
    their clusters; or nothing, within one."""
    states, labels = edge_states(solution, prove), solution.clusters(prove).labels
    number = [labels[label] for label in solution.labels]
    found: list[str] = []
    for i, j in pairs:
        state = states.get((i, j), states.get((j, i), "split"))
        apart = "undecided" if state == "undecided" else "between clusters"
        found.append(apart if number[i] != number[j] else "")
    return found
