"""A run on disk: it goes on bit for bit as though it had never been broken off."""
