"""The parts of one tree that another tree lacks, from sets of parts."""

from oracle.dependency.parts import part_keys, tree_parts


def difference_keys(templates, words, heads, others, order):
    """List the keys of the parts of `heads` that `others` lacks."""
    lacking = tree_parts(heads, order) - tree_parts(others, order)
    return [key for part in lacking for key in part_keys(templates, words, part)]
