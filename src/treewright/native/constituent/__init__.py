"""Compiled loops of constituency parsing."""
