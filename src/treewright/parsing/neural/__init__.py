"""Neural sentence encoders: inputs, training with PyTorch, and inference without it."""
