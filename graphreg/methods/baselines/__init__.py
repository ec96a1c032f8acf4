"""What methods are compared with: subgradients, and problems of which graphs are no part."""
