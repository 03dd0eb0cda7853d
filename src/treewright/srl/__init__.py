"""Semantic roles: who does what to whom, found and named by tree kernels."""
