"""The common interface of models that annotate sentences, and a function that annotates files."""
