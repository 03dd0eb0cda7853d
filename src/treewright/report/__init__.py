"""Reports: tables, plots, HTML pages, the demo and the experiments of the papers."""
