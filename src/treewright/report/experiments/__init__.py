"""One module per experiment; `treewright reproduce` lists them."""
