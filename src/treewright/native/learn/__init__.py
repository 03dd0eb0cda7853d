"""Compiled loops of learners."""
