"""The speed and the limit of every method, beside what its theory promises.

Each module of this folder holds the studies of one family of methods: functions without arguments whose names begin
with ``study_`` and that return a DataFrame with the columns ``asked`` and ``found`` (and whatever else explains them).
"""
