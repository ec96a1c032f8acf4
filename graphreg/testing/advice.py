"""What a law that fails usually means, and what to change."""

from __future__ import annotations

ADVICE = {
    "sizes": "check(k), or the function itself, refuses these numbers of coordinates: pass k= that it takes",
    "shapes and rows": "something is summed over the wrong axis, a step is not one per row (reshape it to (-1, 1)), or "
    "the input is changed in place",
    "non negative": "phi >= 0 and phi(0) = 0 are asked of a penalty: subtract the constant; where it is smallest at a, "
    "and not at 0, write phi(z + a) and give center=a to NodePenalty",
    "convex": "value is not that of a convex function: look for a minus, or for a branch that is taken on the wrong "
    "side of a kink",
    "prox fenchel young": "prox does not minimise step * f(p) + 1/2 ||p - v||^2 for the f of value, or conjugate is "
    "not that of value; most often step is missing or doubled, or the threshold is. If prox is right by hand, look at "
    "conjugate",
    "fenchel young everywhere": "conjugate is too small: most often it gives a number outside its domain, where it "
    "must be +inf with zero tolerance (np.where(inside, ..., np.inf)). Lower bounds would be no bounds",
    "ends of the domain": "conjugate is finite a little beyond the slopes of the function far away: its domain has "
    "zero tolerance, np.where(size <= 1.0, ..., np.inf) and not 1.0 + 1e-12",
    "even": "an edge has no direction: use abs(z) or squares; a function that means its sign derives from "
    "gr.AbstractOneSided and stands in NodePenalty",
    "methods of the domain": "move the method to a class derived from gr.FlowDomain (of a loss gr.PriceDomain), and "
    "return it from the property `domain` (`prices`); rename it where it is something else",
    "is equality": "the conjugate is 0 along all axes, as that of {0} is, and phi is finite at other points than 0",
    "pieces": "pieces(k) says that phi is a sum of Euclidean norms of pieces; leave it out where it is not",
    "quadratic": "quadratic(k) returns Q with phi(z) = 1/2 z'Qz: mind the half",
    "cvxpy value": "cvxpy writes another function than value: a missing half, sum for a value per row (axis=1), or "
    "other parameters",
    "cvxpy argmin": "cvxpy and prox speak of different functions: compare both with value at the point that is shown",
    "cvxpy conjugate value": "cvxpy_conjugate writes another function than conjugate, or forgets its domain: return "
    "the constraints and then the expression",
    "as written": "what stands for the function on so many coordinates has other values than it: its values depend on "
    "more than the row, or CVXPY rounds an exponent (approx=False)",
    "gauge": "gauge(u) is the least t with u / t in dom phi*: one over the largest multiple of u inside",
    "gauge at zero": "gauge_at_zero speaks of the u with conjugate(u) = 0: a conjugate that rounding leaves above 0 "
    "there needs a gauge_at_zero in closed form",
    "clip": "clip(u) must end inside dom of the conjugate, and leave alone what is inside; aim a little inside its "
    "boundary (by a factor 1 - 1e-14)",
    "reach": "start + reach (end - start) must stay in dom of the conjugate; where 0 is on its boundary, write "
    "interior and reach, or derive from gr.AbstractOneSided",
    "dual prox": "dual_prox(v, step, weight) is v - step * prox(v / step, weight / step): mind what is divided",
    "conductance": "conductance is a finite number >= 0 for each coordinate, or one per row, (m, 1)",
    "conduct": "conduct is a symmetric positive semidefinite linear map that stays in the span of dom phi*",
    "interior": "interior(k) must lie well inside dom phi*: where 0 is on its boundary give another point, or derive "
    "from gr.AbstractOneSided, which finds one",
    "subgradient": "subgradient(z) or gradient(z) is not that of value; by default it rests on prox with a short step",
    "smoothness": "smoothness() claims an L that is too small: it is the largest curvature",
    "curvature": "curvature is not the derivative of gradient, or is negative somewhere",
    "strong convexity": "strong_convexity() claims a mu that is too large: it is the least curvature, also far away",
    "recession": "recession(k) is the cone along which phi does not grow: all zeros where it grows everywhere",
    "projection": "project(z) must land exactly where value is 0, and leave alone what is there",
    "norm": "dual_norm is not the dual of value, or project_dual(u, radius) does not project onto its ball: prox is "
    "v - project_dual(v, step)",
    "value bound of penalties": "value_bound is below value somewhere in the box, or value rounds more than it says: "
    "avoid differences of large numbers",
    "conjugate bound of penalties": "conjugate rounds more than 16 units in the last place (differences of large "
    "numbers; np.log1p, np.expm1, squares of sums help), or runs a solver: then say so by accuracy()",
    "room": "room(u) lets a coordinate move out of dom phi*; by default it follows from gauge",
    "composed": "composed() returns R, with fewer rows than coordinates and of full rank, and h with phi(z) = h(Rz)",
    "gradient differences": "gradient is not the derivative of value: a sign, a factor, or x - y for y - x",
    "gradient fenchel young": "conjugate is not that of value, or the gradient leaves its domain: with b = gradient(x, "
    "y), l(x) + l*(b) = x b; mind the part of the target, b y",
    "slopes": "smoothness() or least_curvature() claims what gradient does not keep",
    "curvature within": "curvature_within claims bounds that curvature leaves; return None where nothing is known",
    "encode": "encode(target) takes every coding that it means and refuses the rest with a DataError",
    "scales": "scales() are positive, one per sample: leave them to the base class",
    "domain": "domain(y) gives the ends of the prices with a finite conjugate: the slopes of l at -inf and +inf",
    "span": "span is a projection onto the affine hull of dom l*",
    "value bound of losses": "value rounds more than it says (a formula that cancels near the target), or value_bound "
    "is below it",
    "conjugate bound of losses": "conjugate cancels (log1p, xlogy, a formula of its own near 0 help), or is finite "
    "beyond the end of its domain",
    "dependent": "dependent(y) names a coordinate only where the prices of a sample sum to 0",
    "descent": "descent(y) speaks of the directions along which l does not grow: by default from the ends of domain "
    "that are 0",
    "remains": "remains(y, fallen) gives what is left far out along a direction of descent",
    "smoothed": "smoothed(x, y) is (value, gradient, curvature) of a smooth loss with prices inside dom l*",
    "response": "response(x) is the mean of the target at the predictor x: the x that is best for y has response y",
    "classify": "classify(x) gives the classes as the data coded them",
}
