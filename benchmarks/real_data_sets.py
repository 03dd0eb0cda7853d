"""Data sets of `real_data.py`: public data on the user's disk, and synthetic data.

Each function takes the folder of treebanks and returns a `Data`; it raises `Missing` if files are missing.
Nothing is downloaded. NLTK corpora are searched for in the data folders of NLTK, and scikit-learn data sets
in its data folder.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

import treewright as tw

SMALL = 2000
"""Rows below which all of them are tested, in five folds; one split of so few would measure chance."""


class Missing(Exception):  # noqa: N818
    """Data that are not on this disk."""


class Data(NamedTuple):
    """Rows, what is to be predicted, and the rows to train on and to test on, once or in folds."""

    X: Any
    y: Any
    splits: list[tuple[Any, Any]]
    is_regression: bool = False

    @property
    def is_table(self):
        """Whether columns are numbers and categories; otherwise they are zeros and ones."""
        return not isinstance(self.X, csr_matrix)

    def for_tuning(self):
        """Return the rows of the first training part alone, split again: the test rows stay unseen."""
        kept = np.sort(self.splits[0][0])
        X = self.X.iloc[kept].reset_index(drop=True) if self.is_table else self.X[kept]
        splits = split(self.y[kept], self.is_regression, random_state=1)
        return Data(X, self.y[kept], splits, self.is_regression)


def split(y, is_regression=False, random_state=0):
    """Return five folds of few rows, or one split of many with a quarter to test on."""
    places = np.arange(len(y))
    if len(y) < SMALL:
        kind = KFold if is_regression else StratifiedKFold
        return list(kind(5, shuffle=True, random_state=random_state).split(places, y))
    stratify = None if is_regression else y
    return [train_test_split(places, test_size=0.25, random_state=random_state, stratify=stratify)]


def of_rows(train, test):
    """Return data of two lists of (names, label); columns are the names that two training rows have."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=list, binary=True, min_df=2, dtype=np.int8)
    vectorizer.fit([sorted(names) for names, _ in train])
    X = vectorizer.transform([sorted(names) for names, _ in [*train, *test]]).tocsr()
    X.sort_indices()
    places = np.arange(len(train) + len(test))
    y = np.array([label for _, label in [*train, *test]])
    return Data(X, y, [(places[: len(train)], places[len(train) :])])


def bundled(name):
    """Return a maker of data that come with scikit-learn."""

    def make(_):
        from sklearn import datasets

        loaded = getattr(datasets, f"load_{name}")(as_frame=True)
        y = loaded.target.to_numpy()
        is_regression = name == "diabetes"
        return Data(loaded.data, y, split(y, is_regression), is_regression)

    return make


def fetched(name, n_rows):
    """Return a maker of data that scikit-learn has downloaded before."""

    def make(_):
        from sklearn import datasets

        try:
            loaded = getattr(datasets, f"fetch_{name}")(as_frame=True, download_if_missing=False)
        except OSError as error:
            raise Missing(f"fetch_{name} of scikit-learn has not been called on this computer") from error
        kept = np.sort(np.random.default_rng(0).permutation(len(loaded.target))[:n_rows])
        y = loaded.target.to_numpy()[kept]
        is_regression = name == "california_housing"
        return Data(loaded.data.iloc[kept].reset_index(drop=True), y, split(y, is_regression), is_regression)

    return make


def read_treebank(folder, name, part):
    """Return trees of the folder of treebanks."""
    if folder is None:
        raise Missing("no folder of treebanks; give --data or set TREEWRIGHT_DATA")
    path = Path(folder) / f"{name}-ud-{part}.conllu"
    if not path.exists():
        path = Path(folder) / f"{name}-{part}.conllu"
    if not path.exists():
        raise Missing(f"no file {path.name} in the folder of treebanks")
    return tw.read_conllu(path)


def trec(folder):
    """Questions by what they ask for: their words."""
    if folder is None or not (Path(folder) / "qc" / "train.txt").exists():
        raise Missing("no file qc/train.txt in the folder of treebanks")
    parts = []
    for part in ("train", "test"):
        lines = (Path(folder) / "qc" / f"{part}.txt").read_text(encoding="latin-1").splitlines()
        parts.append([({*words}, label.split(":")[0]) for label, *words in map(str.split, lines)])
    return of_rows(*parts)


def ewt_attachment(folder):
    """Prepositional phrases of the English Web Treebank: verb, noun, preposition, noun."""

    def quads(part):
        for tree in read_treebank(folder, "ewt/en_ewt", part):
            relations = [each.split(":")[0] for each in tree.deprels]
            for noun, relation in enumerate(relations, start=1):
                verb = int(tree.heads[noun - 1])
                if relation != "obj" or verb > noun:
                    continue
                phrases = [
                    (at, other)
                    for at, (head, name) in enumerate(zip(tree.heads, relations, strict=True), start=1)
                    if name == "case" and at > noun and (other := int(head)) > at
                ]
                found = [(at, other) for at, other in phrases if tree.heads[other - 1] in (verb, noun)][:1]
                for at, other in found:
                    words = [tree.words[place - 1].lower() for place in (verb, noun, at, other)]
                    names = {f"{role}={word}" for role, word in zip("vnpm", words, strict=True)}
                    yield names, "verb" if tree.heads[other - 1] == verb else "noun"

    return of_rows(list(quads("train")), list(quads("test")))


def ewt_genre(folder):
    """Sentences of the English Web Treebank by what kind of page they are from: their words."""

    def sentences(part):
        for tree in read_treebank(folder, "ewt/en_ewt", part):
            name = next(each for each in tree.comments if "sent_id" in each)
            yield {word.lower() for word in tree.words}, name.split("=")[1].strip().split("-")[0]

    return of_rows(list(sentences("train")), list(sentences("test")))


def letters(word):
    """Return the letters of a word at its ends, by their places."""
    word = word.lower()
    names = {f"{place}={word[place]}" for place in (0, 1, -1, -2, -3, -4) if -len(word) <= place < len(word)}
    return names | {f"has {letter}" for letter in word} | {f"{len(word) // 2 * 2} letters"}


def of_words(train, test, n_train=20000):
    """Return data of words and labels by their letters: each word once, test words not among the others."""
    known = dict(train)
    unknown = {word: label for word, label in test if word not in known}
    kept = sorted(known)
    order = np.random.default_rng(0).permutation(len(kept))[:n_train]
    return of_rows(
        [(letters(kept[each]), known[kept[each]]) for each in order],
        [(letters(word), label) for word, label in sorted(unknown.items())],
    )


def ewt_tags(folder):
    """Words of the English Web Treebank by part of speech: their letters."""
    tags = {"NOUN", "VERB", "ADJ", "ADV", "PROPN"}
    parts = [
        [
            (word.lower(), tag)
            for tree in read_treebank(folder, "ewt/en_ewt", part)
            for word, tag in zip(tree.words, tree.upos, strict=True)
            if tag in tags and word.isalpha()
        ]
        for part in ("train", "test")
    ]
    return of_words(*parts)


def icelandic_gender(folder):
    """Icelandic nouns by gender: their letters."""
    parts = []
    for part in ("dev", "test"):  # enough words, and read in a moment
        found = []
        for tree in read_treebank(folder, "icepahc/is_icepahc", part):
            for lemma, tag, feats in zip(tree.lemmas, tree.upos, tree.feats, strict=True):
                gender = [each[7:] for each in str(feats).split("|") if each.startswith("Gender=")]
                if tag == "NOUN" and gender and lemma.isalpha():
                    found.append((lemma.lower(), gender[0]))
        parts.append(found)
    return of_words(*parts)


def ewt_direction(folder):
    """Words of the English Web Treebank: is the head to the left? A table of numbers and categories."""
    import pandas as pd

    def rows(part, n):
        found = []
        for tree in read_treebank(folder, "ewt/en_ewt", part):
            tags = ["none", "none", *tree.upos, "none"]
            for at, head in enumerate(tree.heads):
                if head == 0 or tree.upos[at] == "PUNCT":
                    continue
                row = {
                    "tag": tags[at + 2],
                    "previous": tags[at + 1],
                    "before": tags[at],
                    "next": tags[at + 3],
                    "position": at + 1,
                    "left": len(tree) - at - 1,
                    "letters": len(tree.words[at]),
                    "capital": str(tree.words[at][0].isupper()),
                }
                found.append((row, "left" if head <= at else "right"))
        kept = np.sort(np.random.default_rng(0).permutation(len(found))[:n])
        return [found[each] for each in kept]

    train, test = rows("train", 20000), rows("test", 10000)
    table = pd.DataFrame([row for row, _ in [*train, *test]])
    for name in table.columns[table.dtypes.map(lambda kind: not pd.api.types.is_numeric_dtype(kind))]:
        table[name] = table[name].astype("category")
    y = np.array([label for _, label in [*train, *test]])
    places = np.arange(len(y))
    return Data(table, y, [(places[: len(train)], places[len(train) :])])


def nltk_corpus(name):
    """Return a corpus of NLTK that is on this disk."""
    try:
        import nltk
    except ImportError as error:
        raise Missing("nltk is not installed") from error
    try:
        nltk.data.find(f"corpora/{name}")
    except LookupError:
        try:
            nltk.data.find(f"corpora/{name}.zip")
        except LookupError as error:
            raise Missing(f"no corpus {name} in the folders of NLTK's data") from error
    import nltk.corpus

    return getattr(nltk.corpus, name)


def ppattach(_):
    """Prepositional phrases of Ratnaparkhi and others: verb, noun, preposition, noun."""
    corpus = nltk_corpus("ppattach")
    parts = []
    for part in ("training", "test"):
        parts.append(
            [
                ({f"v={each.verb}", f"n={each.noun1}", f"p={each.prep}", f"m={each.noun2}"}, each.attachment)
                for each in corpus.attachments(part)
            ]
        )
    return of_rows(*parts)


def names(_):
    """First names by gender: their letters."""
    corpus = nltk_corpus("names")
    both = {*corpus.words("male.txt")} & {*corpus.words("female.txt")}
    rows = [
        (letters(word), kind)
        for kind in ("male", "female")
        for word in corpus.words(f"{kind}.txt")
        if word not in both
    ]
    train, test = split([label for _, label in rows])[0]
    return of_rows([rows[each] for each in train], [rows[each] for each in test])


def movie_sentences(name):
    """Return a maker of data from sentences about films in two files."""

    def make(_):
        corpus = nltk_corpus(name)
        rows = [
            ({word.lower() for word in words}, file)
            for file in corpus.fileids()
            if not file.upper().startswith("README")
            for words in corpus.sents(file)
        ]
        train, test = split([label for _, label in rows])[0]
        return of_rows([rows[each] for each in train], [rows[each] for each in test])

    return make


def planted(_):
    """Conjunctions of order 3 and 4 of which no part says anything."""
    problem = tw.make_conjunctions(30000, random_state=0)
    places = np.arange(30000)
    return Data(problem.X, problem.y, [(places[:20000], places[20000:])])


def made(name, make):
    """Return a maker of data: 10,000 rows to train on, 5,000 to test on, 5% of all labels wrong."""

    def make_data(_):
        rng = np.random.default_rng([0, *name.encode()])
        rows, y = make(rng, 15000)
        y = y ^ (rng.random(len(y)) < 0.05)
        places = np.arange(len(y))
        return Data(csr_matrix(rows.astype(np.int8)), y.astype(np.int64), [(places[:10000], places[10000:])])

    return make_data


def decide(rows, rules, weights):
    """Return whether the weights of the rules that hold add up to more than their median."""
    score = sum(
        weight
        * np.logical_and.reduce([rows[:, column] != negated for column, negated in zip(*rule, strict=True)])
        for rule, weight in zip(rules, weights, strict=True)
    )
    return score > np.median(score)


def draw_weights(rng, n):
    """Return weights of both signs."""
    return rng.choice([-1, 1], n) * rng.uniform(1, 2, n)


def zipf(rng, n):
    """Conjunctions of two to four columns, the columns as frequent as words are."""
    rows = rng.random((n, 1000)) < np.minimum(0.5, 5 / np.arange(1, 1001))
    orders = (2, 2, 2, 3, 3, 4) * 6
    rules = [(rng.choice(40, order, replace=False), np.zeros(order, dtype=bool)) for order in orders]
    return rows, decide(rows, rules, draw_weights(rng, len(rules)))


def order_five(rng, n):
    """Conjunctions of five columns out of two hundred that are on in half of the rows."""
    rows = rng.random((n, 200)) < 0.5
    rules = [(rng.choice(200, 5, replace=False), np.zeros(5, dtype=bool)) for _ in range(60)]
    return rows, decide(rows, rules, draw_weights(rng, len(rules)))


def negations(rng, n):
    """Conjunctions of four columns of which some must be absent, out of 300 in half of the rows."""
    rows = rng.random((n, 300)) < 0.5
    rules = [(rng.choice(300, 4, replace=False), rng.random(4) < 0.5) for _ in range(30)]
    return rows, decide(rows, rules, draw_weights(rng, len(rules)))


def parity(rng, n):
    """Whether one or three of three columns are on, out of a hundred."""
    rows = rng.random((n, 100)) < 0.5
    return rows, rows[:, :3].sum(axis=1) % 2 == 1


DATA_SETS: dict[str, Callable[[Any], Data]] = {
    "iris": bundled("iris"),
    "wine": bundled("wine"),
    "breast cancer": bundled("breast_cancer"),
    "digits": bundled("digits"),
    "diabetes": bundled("diabetes"),
    "California housing": fetched("california_housing", 20000),
    "forest cover": fetched("covtype", 20000),
    "TREC questions": trec,
    "EWT: PP attachment": ewt_attachment,
    "EWT: genre of sentences": ewt_genre,
    "EWT: part of speech by letters": ewt_tags,
    "EWT: direction of heads (table)": ewt_direction,
    "Icelandic: gender by letters": icelandic_gender,
    "NLTK: PP attachment": ppattach,
    "NLTK: first names": names,
    "NLTK: polarity": movie_sentences("sentence_polarity"),
    "NLTK: subjectivity": movie_sentences("subjectivity"),
    "made: planted conjunctions": planted,
    "made: Zipf, 5% noise": made("zipf", zipf),
    "made: order 5": made("order 5", order_five),
    "made: negations": made("negations", negations),
    "made: parity of three": made("parity", parity),
}
