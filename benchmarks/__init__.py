"""Measurements: speed (``python -m benchmarks``) and soundness (``python -m benchmarks.soundness``)."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(_name, "1")
