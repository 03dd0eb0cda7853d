"""What the experiments of Turian & Melamed (2006) share."""
