"""Trees, treebank files and generated data: readers, writers, conversions and flat arrays."""
