"""What one tree has and another has not, from sets of parts."""

from oracle.dependency.parts import part_keys, tree_parts


def difference_keys(templates, words, heads, others, order):
    """List the keys of the parts of `heads` that are no parts of `others`."""
    lacking = tree_parts(heads, order) - tree_parts(others, order)
    return [key for part in lacking for key in part_keys(templates, words, part)]
