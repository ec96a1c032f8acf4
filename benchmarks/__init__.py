"""Measurements: speed (``python -m benchmarks``) and soundness (``python -m benchmarks.soundness``)."""
