"""Taggers: parts of speech, morphological features and lemmas."""
