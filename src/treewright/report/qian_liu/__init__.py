"""What the experiments of Qian & Liu (2015) share."""
