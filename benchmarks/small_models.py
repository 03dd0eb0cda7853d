"""Small models of every kind, with functions that use them, for tests with damaged models.

    python benchmarks/small_models.py FOLDER

Trains the models that are not in the folder yet.
"""

import sys
from pathlib import Path

import treewright as tw

BANK = tw.make_treebank(n_sentences=40, random_state=0)
TREES, PHRASES = BANK.dependencies, BANK.constituents
ROLES = BANK.propositions
DATA = tw.make_conjunctions(n_samples=200, n_features=60, random_state=0)
PARSER = {"order": 1, "epochs": 1, "runs": 1, "table_bits": 10, "folds": 2}
NETWORK = {"units": 6, "embedding": 4, "min_count": 2, "epochs": 2, "batch_size": 200, "beam": 3}
TEXT = " ".join(tree.text for tree in TREES[:3])
IS_LONG = [tree.n_nodes > 25 for tree in PHRASES]


def _parser(**options):
    return tw.DependencyParser(**(PARSER | options)).fit(TREES)


def _phrase_parser():
    return tw.ConstituentParser(lowest_penalty=20.0, max_inferences=300).fit(PHRASES[:20])


def _network():
    return tw.LeftCornerParser(device="cpu", learning_rate=0.03, **NETWORK).fit(PHRASES[:20])


def _arguments():
    return tw.find_arguments(PHRASES, ROLES).arguments


def _lists():
    """Return pairs of trees, which of both is wrong, and scores."""
    pairs = [[PHRASES[at], PHRASES[at + 1]] for at in range(0, 16, 2)]
    return pairs, [[0.0, 1.0]] * len(pairs), [[-1.0, -1.5]] * len(pairs)


def _reranker(**options):
    settings = {"k": 3, "folds": 2, "significance_level": None} | options
    return tw.DependencyReranker(parser=tw.DependencyParser(**PARSER), **settings).fit(TREES)


TRAININGS = {
    "CandidateReranker": lambda: tw.CandidateReranker(tw.SubsetTreeKernel(decay=0.4), epochs=2).fit(
        *_lists()
    ),
    "ConjunctionClassifier": lambda: tw.ConjunctionClassifier(degree=2, threshold=5).fit(DATA.X, DATA.y),
    "ConjunctionMiner": lambda: tw.ConjunctionMiner(degree=2, threshold=5).fit(DATA.X, DATA.y),
    "ConstituentParser": _phrase_parser,
    "ConstituentReranker": lambda: tw.ConstituentReranker(parser=_network(), kernel="efficient-top", k=3).fit(
        PHRASES[:10], PHRASES[10:15]
    ),
    "DependencyParser": lambda: _parser(tags="predicted"),
    "DependencyParser-3": lambda: _parser(order=3),
    "DependencyReranker": lambda: _reranker(threshold=2.0),
    "DependencyReranker-kernel": lambda: _reranker(learner="kernel"),
    "DependencyReranker-polynomial": lambda: _reranker(space="polynomial", degree=2, threshold=2.0),
    "DependencyReranker-template": lambda: _reranker(space="template"),
    "L1BoostedTrees": lambda: tw.L1BoostedTrees(max_trees=3).fit(DATA.X, DATA.y),
    "LeftCornerParser": _network,
    "LinearizedTreeClassifier": lambda: tw.LinearizedTreeClassifier(n_fragments=50).fit(PHRASES, IS_LONG),
    "Pipeline": lambda: tw.Pipeline(parser=tw.DependencyParser(tags="predicted", **PARSER)).fit(TREES),
    "RoleClassifier": lambda: tw.RoleClassifier("sst").fit(_arguments()),
    "RoleClassifier-linear": lambda: tw.RoleClassifier("linear").fit(_arguments()),
    "RoleLabeler": lambda: tw.RoleLabeler().fit(PHRASES, ROLES),
    "SpanParser": lambda: tw.SpanParser(units=8, layers=1, span_size=8, epochs=2, device="cpu").fit(
        PHRASES[:20]
    ),
    "Tagger": lambda: tw.Tagger(epochs=1).fit(TREES),
    "Tokenizer": lambda: tw.Tokenizer(epochs=1).fit(TREES),
    "TreeKernelClassifier": lambda: tw.TreeKernelClassifier(tw.SubsetTreeKernel()).fit(PHRASES, IS_LONG),
    "TreeKernelClassifier-partial": lambda: tw.TreeKernelClassifier(tw.PartialTreeKernel()).fit(
        PHRASES, IS_LONG
    ),
    "TreeKernelRegressor": lambda: tw.TreeKernelRegressor(tw.SubsetTreeKernel()).fit(
        PHRASES, [float(tree.n_nodes) for tree in PHRASES]
    ),
}
"""How each is trained, by a name that begins with its kind."""


def use(model):
    """Let a model do what it is for, once."""
    kind = type(model).__name__
    if kind in ("ConjunctionClassifier", "L1BoostedTrees"):
        return model.predict(DATA.X[:3])
    if kind == "ConjunctionMiner":
        return model.transform(DATA.X[:3])
    if kind == "CandidateReranker":
        lists, _, scores = _lists()
        return model.predict(lists[:2], scores[:2])
    if kind in ("DependencyParser", "DependencyReranker", "Tagger"):
        found = model.predict(TREES[:2])
        return found if kind == "Tagger" else [found, model.kbest(TREES[:1], k=2)]
    if kind == "Pipeline":
        return [model(TEXT), model.kbest(TREES[:1], k=2)]
    if kind == "Tokenizer":
        return model.split(TEXT)
    if kind == "RoleClassifier":
        return model.predict(_arguments()[:4])
    return model.predict(PHRASES[:2])


def train_models(folder):
    """Return the file of each model by its name; what the folder does not have is trained."""
    folder.mkdir(parents=True, exist_ok=True)
    public = {name: getattr(tw, name) for name in tw.__all__ if name[0].isupper()}
    models = {name for name, kind in public.items() if hasattr(kind, "save")} - {"PartScorer"}  # a base class
    assert {name.partition("-")[0] for name in TRAININGS} == models
    for name, train in TRAININGS.items():
        path = folder / f"{name}.tw"
        if not path.exists():
            train().save(path)
    return {name: folder / f"{name}.tw" for name in TRAININGS}


if __name__ == "__main__":
    for trained in train_models(Path(sys.argv[1])).values():
        use(tw.load(trained))
        print(trained.name, trained.stat().st_size)
