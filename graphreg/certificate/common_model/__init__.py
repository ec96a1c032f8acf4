"""One parameter vector for all nodes: it says of what size a problem's numbers are."""
