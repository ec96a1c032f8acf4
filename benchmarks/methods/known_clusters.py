"""Async-L2GD and Async-AL2SGD+ on known clusters: rates, neighbourhoods, hard cases, and what they send."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import graphreg as gr

if TYPE_CHECKING:
    import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from cluster_cases import by_hand_2, case
from core_cases import view_of

PRECISE = 1e-10


def hard(seed: int, lam: float = 1.0) -> Any:
    """Two clusters of five clients, d = 5, gamma = 20, condition number about 500."""
    return case((5, 5), m=20, d=5, gamma=20.0, lam=lam, seed=seed, spread=1000.0, size=4.0)


def begin(method: Any, c: Any, seed: int, start: Any = None) -> Any:
    return method.init(replace(view_of(c.problem.form), seed=seed), start)


def until(method: Any, c: Any, seed: int, target: float, most: int) -> tuple[Any, int, float]:
    """State, rounds and distance to the optimum where it is below the target, or after the most rounds."""
    star, state, k, distance = c.optimum(), begin(method, c, seed), 0, np.inf
    while k < most and not distance < target:
        state, k = method.step(state), k + 1
        if k % 20 == 0:
            distance = float(np.linalg.norm(method.point(state)[0][: c.n] - star))
    return state, k, distance


def study_distance() -> pd.DataFrame:
    """Async-AL2SGD with its default constants: rounds to 1e-10 in distance to the optimum (by Newton on (2.1)), at
    condition number (L + gamma)/mu of about 500; the certificate of a run with gap=1e-8."""
    import pandas as pd

    rows = []
    for lam, seed in ((100.0, 0), (100.0, 1), (100.0, 2), (1.0, 2)):
        c, method = hard(seed, lam), gr.AsyncAL2SGD()
        K = c.constants()
        _, k, distance = until(method, c, seed, PRECISE, 40_000)
        certified = c.problem.solve(method, gap=1e-8, seed=seed)
        condition = (K["L"].max() + 20.0) / K["mu"]
        row = (lam, seed, condition, k, distance, certified.rounds, certified.certificate.relative_gap)
        rows.append((*row, "1e-10; 1e-8", f"{distance:.1e}; {certified.certificate.relative_gap:.1e}"))
    names = ["lam", "seed", "condition", "rounds", "distance", "rounds to gap", "relative gap", "asked", "found"]
    return pd.DataFrame(rows, columns=names)


def study_hard() -> pd.DataFrame:
    """Hard cases: p_j = 0, gamma = 20, rho = .01: rounds until the distance is 1e-10 of that of the start; and with
    (4.1) as printed, the distance after as many rounds as promise the corrected one a factor exp(-3)."""
    import pandas as pd

    rows, method = [], gr.AsyncAL2SGD(p_cluster=0.0, rho=0.01)
    for seed in range(10):
        c = hard(seed)
        star, state = c.optimum(), begin(method, c, seed)
        far, m = np.linalg.norm(star), {f.name: getattr(state.momentum, f.name)[0] for f in fields(state.momentum)}
        T = int(6 / (m["b2"] * c.constants()["mu"]))
        p0, k, good = state.probabilities.p0[0], 0, 1.0
        while good > 1e-10 and k < 60_000:
            state, k = method.step(state), k + 1
            if k % 500 == 0:
                good = float(np.linalg.norm(state.y[: c.n] - star) / far)
        printed = by_hand_2(c, T, seed, p0, [0.0, 0.0], [1.0, 1.0], m, printed=True)[-1]
        bad = float(np.linalg.norm(printed - star) / far)
        word = "diverges" if bad > 10 else "converges" if bad < np.exp(-3) else "stays away"
        rows.append((seed, k, good, T, bad, "1e-10 in all", f"{good:.1e}; printed {word}"))
    columns = ["seed", "rounds", "corrected", "rounds, printed", "printed", "asked", "found"]
    return pd.DataFrame(rows, columns=columns)


def study_neighbourhood() -> pd.DataFrame:
    """Async-L2GD with a constant step: E||theta - theta*||^2 in the long run, over 1.5 decades of steps; slope 1."""
    import pandas as pd

    c = case(m=60, gamma=np.linspace(0.5, 3.0, 9), lam=[1.0, 5.0, 0.3])
    star, mu = c.optimum(), c.constants()["mu"]
    largest = begin(gr.AsyncL2GD(), c, 0).step_size[0]
    start = (np.concatenate([star, np.zeros((len(c.problem.form.latent), 3))]), None)
    rows, steps = [], [largest * 10**-shift for shift in (0.0, 0.5, 1.0, 1.5)]
    for eta in steps:
        errors, method = [], gr.AsyncL2GD(step_size=eta)
        for seed in range(4):
            state = begin(method, c, seed, start)
            for k in range(T := int(8 / (eta * mu))):
                state = method.step(state)
                if k > T // 4:
                    errors.append(((state.theta[: c.n] - star) ** 2).sum())
        rows.append((eta, float(np.mean(errors))))
    slope = float(np.polyfit(*np.log(np.array(rows)).T, 1)[0])
    return pd.DataFrame(
        [(*row, "slope 1", f"slope {slope:.2f}") for row in rows], columns=["step", "error", "asked", "found"]
    )


def study_decreasing() -> pd.DataFrame:
    """Async-L2GD with a decreasing step: E||theta - theta*||^2 falls as 1/t."""
    import pandas as pd

    c, rounds, method = case((3, 3, 3)), [400, 1300, 4200, 13_500], gr.AsyncL2GD(decreasing=True)
    star, errors = c.optimum(), np.zeros(4)
    for seed in range(4):
        state = begin(method, c, seed)
        for k in range(1, rounds[-1] + 1):
            state = method.step(state)
            for i, t in enumerate(rounds):
                if 0.8 * t < k <= t:
                    errors[i] += ((state.theta[: c.n] - star) ** 2).sum() / (0.2 * t * 4)
    slope = float(np.polyfit(np.log(rounds), np.log(errors), 1)[0])
    rows = [(t, e, "slope -1", f"slope {slope:.2f}") for t, e in zip(rounds, errors, strict=True)]
    return pd.DataFrame(rows, columns=["rounds", "error", "asked", "found"])


def study_messages() -> pd.DataFrame:
    """Rounds of Async-L2GD against Proposition 3.2, corrected, of 20,000 with p0 = .3 and p_j = .4."""
    import pandas as pd

    T, p0, p = 20_000, 0.3, 0.4
    cases = {
        "gamma and alpha equal": (case((3, 3, 3)), True, True),
        "gamma equal within clusters": (case((3, 4, 2)), True, False),
        "alpha equal, gamma within clusters": (case((2, 2), gamma=[1.0, 1.0, 3.0, 3.0], alpha=0.4), True, False),
        "gamma unequal": (case((2, 2), gamma=[1.0, 2.0, 3.0, 4.0]), False, False),
    }
    rows = []
    for name, (c, even, level) in cases.items():
        method = gr.AsyncL2GD(p_global=p0, p_cluster=p)
        state = begin(method, c, 1)
        for _ in range(T):
            state = method.step(state)
        table = state.view.engine.ledger.by_edge().query("purpose == 'method'")
        sent = table.set_index(["sender", "receiver"])["messages"]
        between = int(sent["root", "c0"])
        found = {"between clusters": between, "within c0": int(sent["c0", 0]) - between}
        chances = (p0 * (1 - p0) if level else p0, (1 - p0) ** 2 * p * (1 - p) if even else (1 - p0) * p)
        printed = (p0 * (1 - p0) * T, (1 - p0) * p * (1 - p) * T)
        for (kind, count), chance, print_ in zip(found.items(), chances, printed, strict=True):
            errors = (count - chance * T) / np.sqrt(chance * (1 - chance) * T)
            rows.append((name, kind, round(print_), round(chance * T), count, f"{errors:.1f} standard errors"))
    return pd.DataFrame(rows, columns=["weights", "rounds", "printed", "asked", "found", "off by"])


def study_rounds() -> pd.DataFrame:
    """Rounds to 1e-4 in squared distance over that of the start: between clusters (refreshes included), and within
    the busiest cluster; Nesterov's method on F averages everywhere in each of its rounds. Where C1 is near L, and where
    it is much smaller."""
    import pandas as pd

    rows = []
    for name, lam in (("C1 = .2", 1.0), ("C1 = 10", 100.0)):
        c = hard(0, lam)
        target = 1e-2 * np.linalg.norm(c.optimum())
        K = c.constants()
        constant = begin(gr.AsyncL2GD(), c, 0).step_size[0]
        for method in (gr.AsyncL2GD(step_size=constant / 20), gr.AsyncL2GD(decreasing=True), gr.AsyncAL2SGD()):
            state, k, distance = until(method, c, 0, target, 30_000)
            table = state.view.engine.ledger.by_edge().query("purpose == 'method'")
            sent = table.set_index(["sender", "receiver"])["messages"]
            between = int(sent["root", "c0"])
            kind = " decreasing" if getattr(method, "decreasing", False) else ""
            reached = "" if distance < target else f" (not reached: {distance / target:.1f} of it)"
            rows.append((name, method.name + kind, k, between, int(sent["c0", 0]) - between, "1e-4", f"1e-4{reached}"))
        k = nesterov(c, K["L"].max() + 20.0, K["mu"], target)
        rows.append((name, "Nesterov", k, k, 0, "1e-4", "1e-4"))
    return pd.DataFrame(rows, columns=["instance", "method", "iterations", "between", "within", "asked", "found"])


def nesterov(c: Any, L: float, mu: float, target: float) -> int:
    """Iterations of Nesterov's method with constant momentum on F."""
    star, root = c.optimum(), np.sqrt(L / mu)
    x = y = np.zeros_like(star)
    k = 0
    while np.linalg.norm(x - star) > target:
        new = y - c.gradient(y) / L
        x, y, k = new, new + (root - 1) / (root + 1) * (new - x), k + 1
    return k
