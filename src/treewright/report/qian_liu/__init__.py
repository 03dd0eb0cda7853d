"""Code shared by the experiments of Qian & Liu (2015)."""
