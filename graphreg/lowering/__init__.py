"""From the canonical form to what solves it: CVXPY problems, and the arrays that methods iterate on."""
