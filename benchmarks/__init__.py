"""Measurements: speed (``python -m benchmarks``) and soundness (``python -m benchmarks.soundness``)."""

import os

# before numpy is imported
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# code at hand from the first solve on, so that the others are measured with it
os.environ.setdefault("GRAPHREG_COMPILE", "early")
