"""Sparse binary data sets for the benchmarks of classifiers: real ones from a folder, and synthetic ones.

Each function returns a `Split`. Real data sets that are released with a test set use it; for the others, a
random third of the samples is the test set.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction import DictVectorizer
from sklearn.model_selection import train_test_split

import treewright as tw


class Split(NamedTuple):
    """Samples to learn from and to test on."""

    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray


def _split(X, y, seed, test_size=1 / 3):
    train, test = train_test_split(np.arange(len(y)), test_size=test_size, random_state=seed, stratify=y)
    X = csr_matrix(X)
    return Split(X[train], y[train], X[test], y[test])


def _one_hot(names, n_train=None, min_count=1):
    """Return sets of names as a binary matrix, of those that are frequent enough in the first `n_train`."""
    names = list(names)
    counts = Counter(each for sample in names[: n_train or len(names)] for each in sample)
    kept = [dict.fromkeys((each for each in sample if counts[each] >= min_count), 1) for sample in names]
    return csr_matrix(DictVectorizer(dtype=np.int8).fit_transform(kept))


def questions(folder, seed):
    """TREC questions, six classes: words, bigrams, prefixes of four letters, words at the first positions."""
    parts, labels = [], []
    for name in ("train.txt", "test.txt"):
        for line in (Path(folder) / "qc" / name).read_text(encoding="latin-1").splitlines():
            label, *words = line.split()
            lower = [each.lower() for each in words]
            found = {f"w={each}" for each in lower} | {f"p={each[:4]}" for each in lower if len(each) > 4}
            found |= {f"b={one} {other}" for one, other in pairwise(lower)}
            found |= {f"{place}={each}" for place, each in enumerate(lower[:3])}
            parts.append(sorted(found))
            labels.append(label.split(":")[0])
    y = np.array(labels)
    n_train = 5452
    X = _one_hot(parts, n_train, min_count=2)
    return Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _read(folder, part):
    return tw.read_conllu(Path(folder) / "ewt" / f"en_ewt-ud-{part}.conllu")


def letters(folder, seed):
    """The most frequent UPOS of each word type of EWT (eight classes), by its letters."""
    tags = {}
    for tree in _read(folder, "train") + _read(folder, "dev"):
        for word, tag in zip(tree.words, tree.upos, strict=True):
            tags.setdefault(word, Counter())[tag] += 1
    best = {word: counts.most_common(1)[0][0] for word, counts in sorted(tags.items())}
    common = {tag for tag, _ in Counter(best.values()).most_common(8)}
    words = [word for word, tag in best.items() if tag in common]
    samples = []
    for word in words:
        lower = word.lower()
        found = {f"{length}^{lower[:length]}" for length in (1, 2, 3)}
        found |= {f"{length}${lower[-length:]}" for length in (1, 2, 3, 4)}
        found |= {f"has {one}{other}" for one, other in pairwise(lower)}
        found |= {f"length {min(len(word), 12)}", f"upper {word[0].isupper()}{word.isupper()}"}
        found |= {"digit"} if any(each.isdigit() for each in word) else set()
        samples.append(found)
    return _split(_one_hot(samples, min_count=3), np.array([best[word] for word in words]), seed)


def attachment(folder, seed):
    """Attachment of a preposition in EWT to the verb or to its object, by these words and its noun."""
    parts = []
    for part in ("train", "dev", "test"):
        samples, labels = [], []
        for tree in _read(folder, part):
            heads, relations = tree.heads.tolist(), [each.split(":")[0] for each in tree.deprels]
            words = [each.lower() for each in tree.words]
            for place, head in enumerate(heads):
                if relations[place] != "case" or tree.upos[place] != "ADP" or head - 1 <= place:
                    continue
                noun, above = head - 1, heads[head - 1] - 1
                objects = [
                    each
                    for each in range(place)
                    if relations[each] == "obj"
                    and heads[each] - 1 < each
                    and above in (each, heads[each] - 1)
                ]
                if not objects:
                    continue
                one = objects[-1]
                four = (words[heads[one] - 1], words[one], words[place], words[noun])
                samples.append([f"{name}={each}" for name, each in zip("vnpm", four, strict=True)])
                labels.append("noun" if above == one else "verb")
        parts.append((samples, labels))
    samples = [each for part in parts for each in part[0]]
    y = np.array([each for part in parts for each in part[1]])
    n_train = len(parts[0][0]) + len(parts[1][0])
    X = _one_hot(samples)
    return Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _genres(folder):
    samples, labels, n_train = [], [], 0
    for part in ("train", "dev", "test"):
        n_train = len(samples) if part == "test" else 0
        path = Path(folder) / "ewt" / f"en_ewt-ud-{part}.conllu"
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            lines = [line.split("\t") for line in block.splitlines() if line and line[0].isdigit()]
            words = [line[1].lower() for line in lines if line[0].isdigit()]
            named = [line for line in block.splitlines() if line.startswith("# sent_id")]
            if len(words) >= 5 and named:
                samples.append({f"w={each}" for each in words})
                labels.append(named[0].split("=")[1].split("-")[0].strip())
    return samples, np.array(labels), n_train


def genres(folder, seed):
    """The genre of a sentence of EWT (five classes) by its words."""
    samples, y, n_train = _genres(folder)
    X = _one_hot(samples, n_train, min_count=2)
    return Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def reviews(folder, seed):
    """Is a sentence of EWT from a review or from an answer? By its words; two classes."""
    samples, y, n_train = _genres(folder)
    wanted = np.flatnonzero(np.isin(y, ("reviews", "answers")))
    n_train = int((wanted < n_train).sum())
    X, y = _one_hot([samples[each] for each in wanted], n_train, min_count=2), y[wanted]
    return Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _above(values, n_cuts):
    """Return for each number which of its column's quantiles it is above."""
    cuts = np.quantile(values, np.linspace(0, 1, n_cuts + 2)[1:-1], axis=0)
    columns = [values[:, [each]] > np.unique(cuts[:, each]) for each in range(values.shape[1])]
    return csr_matrix(np.hstack(columns).astype(np.int8))


def digits(folder, seed):
    """Digits of scikit-learn: pixels above 3, 7 and 11."""
    data = load_digits()
    X = csr_matrix(np.hstack([data.data > each for each in (3, 7, 11)]).astype(np.int8))
    return _split(X, data.target, seed)


def cancer(folder, seed):
    """Breast cancer of scikit-learn: measures above each of their deciles."""
    data = load_breast_cancer()
    return _split(_above(data.data, 9), data.target, seed)


def _zipf_rows(n_samples, n_features, n_active, rng):
    shares = np.minimum(0.5, n_active / 8 / (np.arange(n_features) + 2.0) ** 0.8)
    return rng.random((n_samples, n_features)) < shares


def _flipped(y, rng, noise=0.05):
    return np.where(rng.random(len(y)) < noise, ~y, y).astype(int)


def zipf(folder, seed):
    """Conjunctions of two or three frequent features (Zipf), each for one class; 5% noise."""
    rng = np.random.default_rng(seed)
    dense = _zipf_rows(12_000, 500, 60, rng)
    scores = np.zeros(len(dense))
    for _ in range(25):
        order = rng.integers(2, 4)
        chosen = rng.choice(40, order, replace=False)
        scores += rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5) * dense[:, chosen].all(axis=1)
    return _split(csr_matrix(dense, dtype=np.int8), _flipped(scores > np.median(scores), rng), seed)


def order_five(folder, seed):
    """Conjunctions of five features; 5% noise."""
    rng = np.random.default_rng(seed)
    dense = rng.random((12_000, 60)) < 0.5
    y = np.zeros(len(dense), dtype=bool)
    for _ in range(12):
        y |= dense[:, rng.choice(60, 5, replace=False)].all(axis=1)
    return _split(csr_matrix(dense, dtype=np.int8), _flipped(y, rng), seed)


def negations(folder, seed):
    """Conjunctions of three features, each present or absent, that vote; 5% noise."""
    rng = np.random.default_rng(seed)
    dense = rng.random((12_000, 80)) < 0.3
    scores = np.zeros(len(dense))
    for number in range(16):
        literals = dense[:, rng.choice(80, 3, replace=False)] ^ (rng.random(3) < 0.5)
        scores += (1 if number % 2 else -1) * literals.all(axis=1) * rng.uniform(0.5, 1.5)
    return _split(csr_matrix(dense, dtype=np.int8), _flipped(scores > np.median(scores), rng), seed)


def parity(folder, seed):
    """The parity of three features among sixty; 5% noise."""
    rng = np.random.default_rng(seed)
    dense = rng.random((12_000, 60)) < 0.5
    y = dense[:, 0] ^ dense[:, 1] ^ dense[:, 2]
    return _split(csr_matrix(dense, dtype=np.int8), _flipped(y, rng), seed)


def planted(folder, seed):
    """`tw.make_conjunctions` with its defaults: no part of a conjunction tells anything."""
    data = tw.make_conjunctions(random_state=seed)
    return _split(data.X, data.y, seed)


def planted_pairs(folder, seed):
    """`tw.make_conjunctions` with pairs and triples of 200 features."""
    data = tw.make_conjunctions(6000, 200, n_active=25, orders=(2,) * 6 + (3,) * 4, random_state=seed)
    return _split(data.X, data.y, seed)


NEED_FOLDER = (questions, letters, attachment, genres, reviews)
MADE = (zipf, order_five, negations, parity, planted, planted_pairs)
DATA_SETS = {each.__name__: each for each in (*NEED_FOLDER, digits, cancer, *MADE)}
