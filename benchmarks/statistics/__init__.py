"""Promises of strengths, recovery and inference, beside what is found: sizes, powers, coverages, times.

Each module of this folder holds studies: functions without arguments whose names begin with ``study_`` and that return
a DataFrame with the columns ``asked`` and ``found`` (and whatever else explains them).
"""
