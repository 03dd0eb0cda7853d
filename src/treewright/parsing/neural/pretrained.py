"""What a network takes from word vectors and a pretrained encoder.

Each goes through a linear layer and stands beside the embeddings that the network learns.
"""

CHANNEL_SIZES = {"vectors": 100, "encoder": 200}
"""Of what the network takes from each."""
PREFIX, TUNED_PREFIX = "pretrained.", "pretrained.module."
"""Of the names of these weights, and of those of an encoder that is tuned."""
