"""Small parsers of constituents, of either kind, for tests of what chooses among their trees."""

import pytest

import treewright as tw


@pytest.fixture(scope="session")
def brackets():
    """Return 50 trees; parsers have seen the first 30 and were judged by the next 6."""
    return tw.make_treebank(n_sentences=50, random_state=0).constituents


@pytest.fixture(scope="session")
def leftcorner(brackets):
    """Train a left-corner parser."""
    pytest.importorskip("torch", reason="training needs PyTorch")
    options = {"units": 12, "embedding": 6, "min_count": 2, "batch_size": 200, "learning_rate": 0.03}
    return tw.LeftCornerParser(epochs=8, beam=6, device="cpu", **options).fit(brackets[:30], brackets[30:36])


@pytest.fixture(scope="session")
def constituent(brackets):
    """Train a parser by classification."""
    return tw.ConstituentParser(lowest_penalty=20.0, max_inferences=1_000).fit(brackets[:30], brackets[30:36])


@pytest.fixture(scope="session")
def span(brackets):
    """Train a span parser."""
    pytest.importorskip("torch", reason="training needs PyTorch")
    options = {"units": 12, "layers": 1, "span_size": 16, "dropout": 0.1, "learning_rate": 0.03}
    return tw.SpanParser(epochs=15, device="cpu", **options).fit(brackets[:30], brackets[30:36])
