"""Tokenization and tagging: sentences, tokens, parts of speech, morphological features and lemmas."""
