"""Inputs of a network from word vectors and a pretrained encoder.

Each passes through a linear layer and is concatenated with the embeddings that the network learns.
"""

CHANNEL_SIZES = {"vectors": 100, "encoder": 200}
"""Output size of each linear layer."""
PREFIX, TUNED_PREFIX = "pretrained.", "pretrained.module."
"""Prefixes of the names of these weights, and of those of a fine-tuned encoder."""
