"""Small models of every kind, and the service that serves them, for tests of the page and its service."""

import threading

import pytest

import treewright as tw

PARSER = {"order": 1, "epochs": 3, "runs": 1, "table_bits": 16, "folds": 2}
RERANKER = {"k": 3, "folds": 2, "threshold": 2.0, "significance_level": None}


@pytest.fixture(scope="session")
def models():
    """Train models by name; all find tags by themselves but `gold`."""
    bank = tw.make_treebank(n_sentences=150, random_state=0)
    parser = tw.DependencyParser(tags="predicted", **PARSER)
    return {
        "parser": parser.fit(bank.dependencies),
        "reranker": tw.DependencyReranker(parser=parser, **RERANKER).fit(bank.dependencies[:80]),
        "gold": tw.DependencyParser(**PARSER).fit(bank.dependencies[:50]),
        "constituents": tw.ConstituentParser(lowest_penalty=20.0, max_inferences=1_000, tags="predicted").fit(
            bank.constituents[:30]
        ),
    }


@pytest.fixture(scope="session")
def served(models):
    """Serve the models on a free port; return the address."""
    uvicorn = pytest.importorskip("uvicorn", reason="the service needs the extra web")
    from treewright.web.app import make_app
    from treewright.web.server import address_of, listen

    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(models), log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield address_of(listener)
    server.should_exit = True
    thread.join()
    listener.close()
