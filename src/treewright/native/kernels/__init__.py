"""Compiled loops of kernels."""
