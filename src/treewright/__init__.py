"""Learn from trees: parsers, tree kernels and feature mining in huge structured spaces."""

import lazy_loader

# __init__.pyi lists the public names; each is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
