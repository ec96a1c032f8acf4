"""Decentralised inference as printed: Table 1, how fast the spectral gaps of networks close."""

from __future__ import annotations

from ... import checks
from ...errors import MethodError

EXPONENTS = {"expander": 0.0, "grid": 1.0, "star": 2.0, "cycle": 2.0, "Erdos-Renyi": 0.0}


def sparseness_exponent(family: str, dimension: int | None = None) -> float:
    """q of Table 1 of Statistical inference for decentralised federated learning, as printed: the spectral gap of the
    lazy Metropolis matrix closes as K^-q.

    For the star it prints 2, and so K = o(T^(1/13)); the gap is exactly 1/(2 K), so that q = 1 and K = o(T^(1/7)). The
    rest holds; `graphreg.theory.sparseness_exponent` computes it of any family.

    Parameters
    ----------
    family : {"expander", "grid", "star", "cycle", "Erdos-Renyi", "torus"}
        The grid is that of two dimensions.
    dimension : int, optional
        k of a torus, of which q = 2/k; for no other family.

    Returns
    -------
    float

    Raises
    ------
    MethodError
        For another family, and for a torus without its dimension.

    Examples
    --------
    >>> gr.theory.printed.sparseness_exponent("star"), gr.theory.printed.sparseness_exponent("torus", 2)
    (2.0, 1.0)
    """
    checks.one_of(*EXPONENTS, "torus")(family, "family", MethodError)
    if (family == "torus") != (dimension is not None):
        raise MethodError(f"a torus has a dimension, and no other family has, got {family!r} and {dimension!r}")
    return EXPONENTS[family] if dimension is None else 2.0 / int(checks.count(dimension, "dimension", MethodError))
