"""Learn from trees: parsers, tree kernels and feature mining in huge structured spaces."""

import lazy_loader

# The public names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
