"""Accuracy of mined gappy n-grams on the TREC questions, with settings chosen by cross-validation.

    python benchmarks/strings.py --data FOLDER [--folds 5] [--seed 0] [--test]

FOLDER has train.txt and test.txt, with lines such as "NUM:date When did it open ?"; the coarse class is
predicted. Settings are chosen one after the other on the training questions: each table has the accuracy of
all values of one setting, with the best values of the previous settings. Tags are predicted by the English
pipeline in the package, which was not trained on the questions. With --test, the chosen classifier is trained
on all training questions and scored on the test questions. It is compared with linear SVMs on words and on
contiguous n-grams (scikit-learn), whose C is chosen on the same folds.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import treewright as tw

SETTINGS = {
    "attributes": [
        ("lower",),
        ("lower", "prefix"),
        ("lower", "prefix", "suffix"),
        ("lower", "prefix", "word"),
        ("lower", "prefix", "tag"),
        ("lower", "prefix", "lower_char"),
    ],
    "max_gap": [0, 1, 2, 3, 5],
    "degree": [1, 2, 3],
    "threshold": [1, 1.5, 2, 3],
    "decay": [0.35, 0.5, 0.7, 1],
    "C": [0.05, 0.1, 0.2],
}
"""Values of each setting, in the order in which they are chosen."""
START = {"max_gap": 3, "degree": 2, "threshold": 1, "decay": 0.5, "C": 0.1, "path": False}
STRENGTHS = (0.03, 0.1, 0.3, 1.0)
"""Values of C that linear models of n-grams choose from."""


def read_questions(path):
    """Return questions as lists of words, and their coarse classes."""
    lines = [line.split() for line in path.read_text(encoding="latin-1").splitlines() if line.strip()]
    return [line[1:] for line in lines], np.array([line[0].partition(":")[0] for line in lines])


def tag_questions(questions):
    """Return questions as lists of words and tags."""
    tagger = tw.load("en").parser_.own_tagger
    found = tagger.tag(questions)
    return [list(zip(words, tags.xpos, strict=True)) for words, tags in zip(questions, found, strict=True)]


def choose_settings(questions, labels, folds):
    """Choose one setting after the other; return them, and the mean and standard deviation over folds."""
    chosen, scores = dict(START), {}

    def score(settings):
        key = repr(sorted(settings.items()))
        if key not in scores:
            begin = time.perf_counter()
            own = cross_val_score(tw.StringFeatureClassifier(**settings), questions, labels, cv=folds)
            scores[key] = own.mean(), own.std(), time.perf_counter() - begin
        return scores[key]

    for name, values in SETTINGS.items():
        print(f"\n| {name} | accuracy | deviation | seconds |\n| --- | --- | --- | --- |")
        for value in values:
            mean, deviation, seconds = score({**chosen, name: value})
            shown = ", ".join(value) if isinstance(value, tuple) else value
            print(f"| {shown} | {mean:.4f} | {deviation:.4f} | {seconds:.0f} |", flush=True)
        chosen[name] = max(values, key=lambda value: score({**chosen, name: value})[0])
    return chosen, score(chosen)


def score_linear(length, data, folds):
    """Return the name, the accuracy over folds and on the test questions of a linear model of n-grams."""
    (train, y_train), (test, y_test) = data
    texts = [" ".join(words) for words in train]

    def make(strength):
        vectorizer = CountVectorizer(token_pattern=r"\S+", ngram_range=(1, length), binary=True)
        return make_pipeline(vectorizer, LinearSVC(C=strength, random_state=0))

    found = {each: cross_val_score(make(each), texts, y_train, cv=folds).mean() for each in STRENGTHS}
    best = max(found, key=found.get)
    accuracy = make(best).fit(texts, y_train).score([" ".join(words) for words in test], y_test)
    return f"linear, contiguous n-grams up to {length}, C {best:g}", found[best], accuracy


def main():
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    train, y_train = read_questions(arguments.data / "train.txt")
    folds = StratifiedKFold(arguments.folds, shuffle=True, random_state=arguments.seed)
    chosen, (mean, deviation, _) = choose_settings(tag_questions(train), y_train, folds)
    print(f"\nchosen: {chosen}; accuracy {mean:.4f}, standard deviation over folds {deviation:.4f}")
    if not arguments.test:
        return
    test, y_test = read_questions(arguments.data / "test.txt")
    begin = time.perf_counter()
    classifier = tw.StringFeatureClassifier(**chosen).fit(tag_questions(train), y_train)
    seconds = time.perf_counter() - begin
    accuracy = classifier.score(tag_questions(test), y_test)
    n_features = len(classifier.features_)
    print(
        f"\n| system | {arguments.folds} folds | test | selected | seconds |\n| --- | --- | --- | --- | --- |"
    )
    print(f"| `StringFeatureClassifier` | {mean:.4f} | {accuracy:.4f} | {n_features:,} | {seconds:.1f} |")
    for length in (1, 2, 3):
        name, own, found = score_linear(length, ((train, y_train), (test, y_test)), folds)
        print(f"| {name} | {own:.4f} | {found:.4f} | | |", flush=True)
    names = classifier.get_feature_names_out()
    print("\nThe largest weights of each class:")
    for label, weights in zip(classifier.classes_, classifier.coef_, strict=True):
        best = [names[at] for at in np.argsort(-weights)[:6]]
        print(f"- {label}: {', '.join(f'`{each}`' for each in best)}")


if __name__ == "__main__":
    main()
