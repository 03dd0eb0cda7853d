"""Semantic role labeling with linear models and tree kernels."""
