"""Word vectors and states of a pretrained encoder as inputs of a network.

Both pass through linear layers, and are then concatenated with the embeddings that the network learns.
"""

CHANNEL_SIZES = {"vectors": 100, "encoder": 200}
"""Output size of each linear layer."""
PREFIX, TUNED_PREFIX = "pretrained.", "pretrained.module."
"""Prefixes of the names of the weights of these layers, and of the weights of a fine-tuned encoder."""
