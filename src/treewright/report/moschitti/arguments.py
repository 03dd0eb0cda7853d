"""Arguments of predicates in training, dev and test sets, for experiments with semantic roles."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treewright.data.bracketed import read_brackets
from treewright.data.consttree import ConstTree
from treewright.data.propbank import PropSentence, read_props
from treewright.errors import InputError
from treewright.report.corpora import CorpusFiles, find_treebank
from treewright.report.separate_process import Values
from treewright.report.store import NAME_LENGTH, ResultStore
from treewright.srl.arguments import Argument, FoundArguments, find_arguments, is_verbal

PARTS = ("train", "dev", "test")


class RolePart(NamedTuple):
    """Sentences and their arguments.

    Attributes
    ----------
    trees : list of ConstTree
        The trees of all sentences.
    arguments : list of Argument
        The arguments in these trees, in order.
    n_unmatched : int
        Number of arguments that are not constituents and were dropped.
    n_predicates : int
        Number of predicates.
    """

    trees: list[ConstTree]
    arguments: list[Argument]
    n_unmatched: int
    n_predicates: int

    @property
    def n_all(self) -> int:
        """Number of arguments, including those that are not constituents."""
        return len(self.arguments) + self.n_unmatched

    @property
    def matched(self) -> float:
        """Percentage of arguments that are constituents."""
        return FoundArguments(self.arguments, self.n_unmatched).matched


class RoleCorpus(NamedTuple):
    """Arguments of the training, dev and test set."""

    name: str
    train: RolePart
    dev: RolePart
    test: RolePart

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of counts for each set."""
        return [
            {
                "title": f"{self.name}, {name}",
                "n_sentences": len(part.trees),
                "n_predicates": part.n_predicates,
                "n_arguments": part.n_all,
                "n_unmatched": part.n_unmatched,
                "matched": part.matched,
            }
            for name, part in zip(PARTS, self[1:], strict=True)
        ]


class PropBank(NamedTuple):
    """A treebank with semantic roles: gold trees and propositions of each set."""

    name: str
    trees: dict[str, list[ConstTree]]
    sentences: dict[str, list[PropSentence]]

    def corpus(self, trees: dict[str, list[ConstTree]] | None = None) -> RoleCorpus:
        """Return the arguments of verbs, in gold trees or in other trees of the same sentences."""
        trees = trees or self.trees
        parts = {name: make_part(trees[name], self.sentences[name]) for name in PARTS}
        for name in ("train", "test"):
            if not parts[name].arguments:
                found = f"the {name} set of {self.name} has no arguments of verbs"
                raise InputError(f"{found}; expected at least one")
        return RoleCorpus(self.name, parts["train"], parts["dev"], parts["test"])


def make_part(trees: list[ConstTree], sentences: Sequence[PropSentence]) -> RolePart:
    """Return the arguments of verbs."""
    found = find_arguments(trees, sentences)
    n_predicates = sum(is_verbal(each, one) for each in sentences for one in each.propositions)
    return RolePart(trees, found.arguments, found.n_unmatched, n_predicates)


def find_propbank(data: Path) -> tuple[CorpusFiles, CorpusFiles]:
    """Return the files of the only constituency treebank of a folder, and the files of its roles."""
    trees = find_treebank(data)
    return trees, CorpusFiles(
        trees.name, _props_of(trees.train), trees.dev and _props_of(trees.dev), _props_of(trees.test)
    )


def _props_of(brackets: Path) -> Path:
    path = brackets.with_name(re.sub(r"\.[a-z]+(\.gz)?$", ".props", brackets.name))
    if not path.is_file():
        raise InputError(f"{path} does not exist; expected a file with the roles of {brackets.name}")
    return path


def read_propbank(data: Path, n_sentences: int | None = None) -> PropBank:
    """Read trees and propositions, optionally with the first training sentences only."""
    brackets, columns = find_propbank(data)
    ends = {"train": n_sentences}
    trees, sentences = {}, {}
    for name in PARTS:
        tree_file, role_file = getattr(brackets, name), getattr(columns, name)
        trees[name] = read_brackets(str(tree_file))[: ends.get(name)] if tree_file else []
        sentences[name] = read_props(str(role_file))[: ends.get(name)] if role_file else []
    return PropBank(brackets.name, trees, sentences)


def write_arguments(corpus: RoleCorpus, store: ResultStore) -> Path:
    """Write the training and test set to a file named after a hash of its content; return its path."""
    text = json.dumps({"train": _as_values(corpus.train), "test": _as_values(corpus.test)}).encode()
    path = store.path("arguments", f"{hashlib.sha256(text).hexdigest()[:NAME_LENGTH]}.json")
    if not path.exists():
        store.write(path, text)
    return path


def _as_values(part: RolePart) -> Values:
    numbers = {id(tree): number for number, tree in enumerate(part.trees)}
    arguments = [(numbers[id(one.tree)], *one[1:]) for one in part.arguments]
    return {"trees": list(map(str, part.trees)), "arguments": arguments}


class KeptArguments(NamedTuple):
    """Stored arguments, each with the index of its sentence."""

    n_sentences: int
    places: list[int]
    arguments: list[Argument]

    def take(self, sentences: Iterable[int]) -> list[Argument]:
        """Return the arguments of some sentences."""
        chosen = set(sentences)
        return [one for place, one in zip(self.places, self.arguments, strict=True) if place in chosen]


def read_arguments(path: Path) -> dict[str, KeptArguments]:
    """Read the training and test set."""
    kept: Values = json.loads(path.read_text(encoding="utf-8"))
    return {name: _from_values(part) for name, part in kept.items()}


def _from_values(values: Values) -> KeptArguments:
    places = [place for place, *_ in values["arguments"]]
    trees = {place: ConstTree.parse(values["trees"][place]) for place in dict.fromkeys(places)}
    arguments = [Argument(trees[place], *rest) for place, *rest in values["arguments"]]
    return KeptArguments(len(values["trees"]), places, arguments)
