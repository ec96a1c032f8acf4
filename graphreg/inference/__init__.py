"""How sure the estimates are: edge tests, confidence regions, hierarchical estimators."""
