"""The strength from which all nodes agree."""
