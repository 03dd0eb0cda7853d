"""Reranking: choosing among the k-best candidates of parsers and other systems."""
