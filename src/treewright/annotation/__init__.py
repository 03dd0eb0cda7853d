"""One contract for whatever annotates sentences, and the driver that annotates files with it."""
