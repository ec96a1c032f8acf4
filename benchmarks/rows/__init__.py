"""Models of rows: what of the literature and of peers can be said, and beside whom (``python -m benchmarks.rows``)."""
