"""Semantic role labelling with linear models and tree kernels."""
