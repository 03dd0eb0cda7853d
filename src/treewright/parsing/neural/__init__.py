"""Networks that read sentences: their inputs, training with PyTorch, and inference without it."""
