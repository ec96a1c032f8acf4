"""Algorithms written by hand, right ones and ones with a planted bug, and what an audit says of them."""
