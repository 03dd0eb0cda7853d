"""Selection of features in spaces too large to enumerate."""
