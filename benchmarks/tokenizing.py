"""Accuracy, speed and size of the tokenizer, and its behaviour on random strings.

python benchmarks/tokenizing.py train.conllu test.conllu [more.conllu ...]
python benchmarks/tokenizing.py --fuzz 1000000 train.conllu
python benchmarks/tokenizing.py --folds 5 [--store after.json] [--compare before.json] PREFIX [PREFIX ...]

With --folds, each PREFIX, such as DATA/ud/hu_szeged-ud, stands for a treebank. Its training and dev sets are
split into that number of consecutive parts, and each part is tokenized by a tokenizer trained on the others.
--store writes the places of the errors to a file, and --compare compares them with an earlier file by the
sign test.

The raw text of a treebank is made as in the CoNLL 2018 shared task: consecutive sentences, lines of up to 80
columns, and a blank line between paragraphs. F1 is computed as in the shared task: tokens and sentences are
correct if they have the same characters; words of multiword tokens are aligned by their forms.
"""

import argparse
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

import treewright as tw
from treewright.data.conllu import format_tree
from treewright.data.deptree import DepTree
from treewright.tagging.surface import Surface, begins_paragraph, surface_tokens
from treewright.tagging.tokenizer import UNWRITABLE, Tokenizer

COLUMNS = 80
SPEED_TEXT = 4_000_000
"""Bytes of text by which speed is measured."""
RANGE = re.compile(r"TokenRange=(\d+):(\d+)")


def raw_text(trees: Sequence[DepTree]) -> str:
    """Return the text of sentences, wrapped."""
    paragraphs: list[str] = []
    for tree in trees:
        if begins_paragraph(tree) or not paragraphs:
            paragraphs.append("")
        paragraphs[-1] += "".join(token.form + token.spaces for token in surface_tokens(tree))
    return "\n\n".join(map(wrap, paragraphs)) + "\n"


def wrap(paragraph: str) -> str:
    """Break a paragraph into lines at its spaces."""
    lines = [""]
    for piece in paragraph.strip(" ").split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(piece) > COLUMNS:
            lines.append(piece)
        else:
            lines[-1] = f"{lines[-1]} {piece}" if lines[-1] else piece
    return "\n".join(lines)


def spans(trees: Sequence[DepTree]) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[Surface]]:
    """Return where tokens and sentences are among the characters that are no white space, and the tokens."""
    tokens, sentences, surfaces = [], [], []
    at = 0
    for tree in trees:
        first = at
        for token in surface_tokens(tree):
            size = len("".join(token.form.split()))
            tokens.append((at, at + size))
            surfaces.append(token)
            at += size
        sentences.append((first, at))
    return tokens, sentences, surfaces


def f1(gold: Sequence[object], found: Sequence[object]) -> float:
    """Return F1 of two collections, in percent."""
    return 200 * len(set(gold) & set(found)) / (len(gold) + len(found))


def word_f1(gold: Sequence[DepTree], found: Sequence[DepTree]) -> float:
    """Return F1 of words, in percent."""
    sides = []
    for trees in (gold, found):
        tokens, _, surfaces = spans(trees)
        sides.append([(*span, token) for span, token in zip(tokens, surfaces, strict=True)])
    n_words = [sum(len(token.words) for _, _, token in side) for side in sides]
    n_right = 0
    for parts in regions(*sides):
        gold_tokens, found_tokens = (side[part] for side, part in zip(sides, parts, strict=True))
        by_form = any(token.is_multiword for _, _, token in gold_tokens + found_tokens)
        n_right += longest_common_subsequence(
            words_of(gold_tokens, by_form=by_form), words_of(found_tokens, by_form=by_form)
        )
    return 200 * n_right / sum(n_words)


def regions(*sides: list[tuple[int, int, Surface]]) -> Iterator[tuple[slice, slice]]:
    """Yield the tokens of either side between places at which both have a boundary."""
    shared = sorted(set.intersection(*({end for _, end, _ in side} for side in sides)))
    begins = [0, 0]
    for end in shared:
        stops = list(begins)
        for number, side in enumerate(sides):
            while stops[number] < len(side) and side[stops[number]][1] <= end:
                stops[number] += 1
        yield slice(begins[0], stops[0]), slice(begins[1], stops[1])
        begins = stops


def words_of(tokens: list[tuple[int, int, Surface]], *, by_form: bool) -> list[object]:
    """Return what must be equal in words: their forms, or their places."""
    return [word.lower() if by_form else (begin, end) for begin, end, token in tokens for word in token.words]


def longest_common_subsequence(a: list[object], b: list[object]) -> int:
    """Return its length."""
    if a == b:
        return len(a)
    lengths = [0] * (len(b) + 1)
    for item in a:
        before = list(lengths)
        for at, other in enumerate(b):
            lengths[at + 1] = before[at] + 1 if item == other else max(before[at + 1], lengths[at])
    return lengths[-1]


def measure(tokenizer: Tokenizer, path: str) -> None:
    """Print how well and how fast the text of a treebank is split."""
    gold = tw.read_conllu(path, require_heads=False)
    text = raw_text(gold)
    found = tokenizer.split(text)
    tokens, sentences, _ = spans(gold)
    found_tokens, found_sentences, _ = spans(found)
    repeated = text * max(1, SPEED_TEXT // len(text.encode()))
    start = time.process_time()
    n_sentences = sum(1 for _ in tokenizer.iter_split([repeated]))
    seconds = time.process_time() - start
    print(
        f"{os.path.basename(path)}: tokens {f1(tokens, found_tokens):.2f}, "
        f"sentences {f1(sentences, found_sentences):.2f}, words {word_f1(gold, found):.2f}, "
        f"{len(repeated.encode()) / 1e6 / seconds:.2f} MB and {n_sentences / seconds:.0f} sentences "
        "a second of CPU time",
        flush=True,
    )


def cross_validate(prefix: str, n_folds: int, most: int | None) -> dict[str, list[int]]:
    """Tokenize each part of a treebank; print scores and return the places of boundary errors."""
    trees = [
        tree
        for part in ("train", "dev")
        for tree in tw.read_conllu(f"{prefix}-{part}.conllu", require_heads=False)
    ][:most]
    bounds = np.linspace(0, len(trees), n_folds + 1).astype(int).tolist()
    errors: dict[str, list[int]] = {"tokens": [], "sentences": []}
    scores = []
    n_differences = offset = 0
    for begin, stop in pairwise(bounds):
        gold = trees[begin:stop]
        found = Tokenizer().fit(trees[:begin] + trees[stop:]).split(raw_text(gold))
        gold_spans, found_spans = spans(gold)[:2], spans(found)[:2]
        for name, right, guess in zip(errors, gold_spans, found_spans, strict=True):
            ends = {end for _, end in right} ^ {end for _, end in guess}
            errors[name] += [offset + end for end in sorted(ends)]
        n_differences += len(set(gold_spans[0]) ^ set(found_spans[0]))
        scores.append([*map(f1, gold_spans, found_spans), word_f1(gold, found)])
        offset += gold_spans[0][-1][1]
    tokens, sentences, words = np.mean(scores, axis=0)
    print(
        f"{Path(prefix).name}: {n_differences} wrong or missing tokens; boundaries wrong or missing: "
        f"{len(errors['tokens'])} of tokens, {len(errors['sentences'])} of sentences; "
        f"mean F1: tokens {tokens:.2f}, sentences {sentences:.2f}, words {words:.2f}",
        flush=True,
    )
    return errors


def compare(before: dict[str, list[int]], after: dict[str, list[int]]) -> None:
    """Print how many boundary errors are gone or new, with the p-value of the sign test."""
    for name, places in after.items():
        gone, new = len(set(before[name]) - set(places)), len(set(places) - set(before[name]))
        tail = sum(math.comb(gone + new, few) for few in range(min(gone, new) + 1)) / 2 ** (gone + new)
        print(
            f"  boundaries of {name}: {len(before[name])} to {len(places)} errors "
            f"({gone} gone, {new} new, p = {min(1, 2 * tail):.4f})",
            flush=True,
        )


def fuzz(tokenizer: Tokenizer, count: int) -> None:
    """Split random strings of all planes of Unicode and check that every character comes back."""
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for done in range(1, count + 1):
        text = random_text(rng)
        check(text, tokenizer.split(text))
        if done % 50_000 == 0:
            print(f"{done} strings, {time.perf_counter() - start:.0f} s", flush=True)


def random_text(rng: np.random.Generator) -> str:
    """Return up to 60 characters: of ASCII, white space and controls, the first planes, or anywhere."""
    size = rng.integers(0, 61)
    highest = np.array([0x80, 0x21, 0x3000, 0x110000])[rng.integers(0, 4, size)]
    points = (rng.random(size) * highest).astype(np.uint32)
    points[(points >= 0xD800) & (points < 0xE000)] = 0x2029
    return points.astype("<u4").tobytes().decode("utf-32-le")


def check(text: str, trees: Sequence[DepTree]) -> None:
    """Check that the tokens and the white space between them are the text, and that the format holds them."""
    last = 0
    for tree in trees:
        for line in format_tree(tree).split("\n"):
            columns = line.split("\t")
            if len(columns) == 10 and (place := RANGE.search(columns[9])):
                begin, end = map(int, place.groups())
                if text[last:begin].strip() or text[begin:end].translate(UNWRITABLE) != columns[1]:
                    raise AssertionError(f"{text!r}: token {columns[1]!r} at {begin}:{end}")
                last = end
    if text[last:].strip():
        raise AssertionError(f"{text!r}: nothing after {last}")


def main() -> None:
    """Train on the first file and split the text of the others, or random strings; or cross-validate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train")
    parser.add_argument("others", nargs="*")
    parser.add_argument("--fuzz", type=int, default=0, metavar="N", help="split N random strings")
    parser.add_argument("--folds", type=int, metavar="N", help="cross-validate with N folds")
    parser.add_argument("--most", type=int, metavar="N", help="use the first N sentences of each treebank")
    parser.add_argument("--store", type=Path, metavar="FILE", help="store the errors of --folds")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with stored errors")
    arguments = parser.parse_args()
    if arguments.folds:
        before = json.loads(arguments.compare.read_text()) if arguments.compare else {}
        errors = {}
        for prefix in (arguments.train, *arguments.others):
            name = Path(prefix).name
            errors[name] = cross_validate(prefix, arguments.folds, arguments.most)
            if name in before:
                compare(before[name], errors[name])
        if arguments.store:
            arguments.store.write_text(json.dumps(errors))
        return
    train = tw.read_conllu(arguments.train, require_heads=False)
    Tokenizer(epochs=1).fit(train[:100]).split("compile")
    start = time.process_time()
    tokenizer = Tokenizer().fit(train)
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.tw")
        tokenizer.save(path)
        size = os.path.getsize(path) / 1e6
    print(f"{seconds:.0f} s of CPU time to train, {size:.2f} MB", flush=True)
    for path in arguments.others:
        measure(tokenizer, path)
    fuzz(tokenizer, arguments.fuzz)


if __name__ == "__main__":
    main()
