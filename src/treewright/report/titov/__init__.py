"""What the experiments of Titov & Henderson (2005) share."""
