"""Features selected in spaces too large to be visited."""
