"""Learners that do not care what their features mean."""
