"""Learners that work on any features: perceptrons, rankers, boosting."""
