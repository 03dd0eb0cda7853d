"""Arguments in automatic parses by our own constituency parser: of PropBank, and of FrameNet."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treewright.data.bracketed import read_brackets, write_brackets
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.framenet import FrameAnnotation, FrameSentence, iter_framenet
from treewright.errors import InputError
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.progress import report, silenced
from treewright.report.experiment import Inputs, ThreadedSettings
from treewright.report.moschitti.arguments import PARTS, PropBank, RoleCorpus, RolePart
from treewright.report.store import hash_file, load_parser, make_name
from treewright.report.turian.bench import ConstituentBench, ParserSystem
from treewright.srl.arguments import Argument, node_places, shape_of
from treewright.tagging.tagger import Tagger, jackknife

TRAINED = ParserSystem("shift-reduce", "predicted", None)
"""The parser that is trained where none is given."""
AT_A_TIME = 1000
"""Sentences that are parsed before they are kept."""
FOLDS = 5
"""Parts in which training sentences are tagged as if they were new."""
N_ROLES = 18
"""Of FrameNet, the most frequent, as in the paper."""
LEAST_EXAMPLES = 100
"""Of a role of FrameNet; rarer ones are left out."""
SHARES = (0.70, 0.85)
"""Of FrameNet's sentences: where those to train on end, and those that are kept apart as dev."""
ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


class OwnParser:
    """A parser that is given or trained, with a tagger if it needs one; what it makes is kept.

    Parameters
    ----------
    settings : ThreadedSettings
    inputs : Inputs
    gold : sequence of ConstTree
        Trees of the sentences to train on, which a tagger learns from.
    model : Path, optional
        Of the parser; one is trained without it.
    treebank : Path, optional
        Folder of the treebank to train it on; that of the data without it.
    """

    def __init__(
        self,
        settings: ThreadedSettings,
        inputs: Inputs,
        gold: Sequence[ConstTree],
        *,
        model: Path | None = None,
        treebank: Path | None = None,
    ) -> None:
        self._settings, self._store = settings, inputs.store
        self._model, self._inputs = model, inputs._replace(data=treebank or inputs.data)
        self._gold = [DepTree(tree.words(), xpos=tree.tags()) for tree in gold]

    @cached_property
    def _bench(self) -> ConstituentBench:
        return ConstituentBench(self._settings, self._inputs)

    @cached_property
    def parser(self) -> ConstituentParser:
        """The parser, which is trained if it is not there."""
        if self._model is None:
            return self._bench.trained(TRAINED).parser
        return load_parser(self._model, ConstituentParser, n_jobs=self._settings.n_jobs)

    @cached_property
    def _identity(self) -> str:
        name = hash_file(self._model) if self._model else self._bench.name(TRAINED)
        return make_name(name, self._settings.random_state, FOLDS, trees=(self._gold,))

    def parse_training(self) -> list[ConstTree]:
        """Return trees of the sentences to train on; their tags are by taggers that have not seen them."""
        return self._parse(self._gold, is_training=True)

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[ConstTree]:
        """Return trees of sentences, which are parsed if that is not kept."""
        return self._parse([DepTree(words) for words in sentences])

    def _parse(self, sentences: Sequence[DepTree], *, is_training: bool = False) -> list[ConstTree]:
        trees = []
        for begin in range(0, len(sentences), AT_A_TIME):
            part = sentences[begin : begin + AT_A_TIME]
            name = make_name(self._identity, is_training, begin if is_training else 0, trees=(part,))
            path = self._store.path("parses", f"{name}.mrg")
            if not path.exists():
                tagged = self._tagged_training[begin : begin + len(part)] if is_training else self._tag(part)
                write_brackets(self.parser.predict(tagged), path)
                report(f"parsed {begin + len(part):,} of {len(sentences):,} sentences")
            trees += read_brackets(str(path), functions=True, traces=True)
        return trees

    @cached_property
    def _tagged_training(self) -> list[DepTree]:
        if not self.parser.needs_tags or len(self._gold) < FOLDS:
            return [DepTree(tree.words, xpos=tree.xpos) for tree in self._gold]
        report("tagging the training sentences")
        return jackknife(
            self._gold, folds=FOLDS, n_jobs=self._settings.n_jobs, random_state=self._settings.random_state
        )

    @cached_property
    def _tagger(self) -> Tagger:
        with silenced():
            return Tagger(random_state=self._settings.random_state).fit(self._gold)

    def _tag(self, sentences: Sequence[DepTree]) -> Sequence[DepTree]:
        return self._tagger.predict(sentences) if self.parser.needs_tags else sentences

    def describe(self) -> str:
        """Say how the parser was made."""
        path, parser = self._model, self.parser
        origin = (
            f"the model {path.name}, trained before"
            if path
            else f"trained on {self._bench.treebank.name}, {len(self._bench.treebank.train):,} sentences"
        )
        options = [f"{name.replace('_', ' ')} {getattr(parser, name)}" for name in ("strategy", "runs")]
        tags = f"a tagger trained on {len(self._gold):,} sentences" if parser.needs_tags else "its own tagger"
        return ", ".join([origin, *options, f"tags by {tags}"])


def parse_propbank(bank: PropBank, parser: OwnParser) -> RoleCorpus:
    """Return the arguments of verbs in automatic parses."""
    trees = {"train": parser.parse_training()}
    for name in PARTS[1:]:
        trees[name] = parser.parse([sentence.words() for sentence in bank.trees[name]])
    return bank.corpus(trees)


class _FrameElement(NamedTuple):
    """A frame element; without an argument if no constituent has its words."""

    label: str
    argument: Argument | None


class _Parsed(NamedTuple):
    """A sentence with its frames and their elements."""

    tree: ConstTree
    n_frames: int
    elements: list[_FrameElement]


def read_frames(folder: Path) -> list[FrameSentence]:
    """Return the sentences that have frame elements; those that come several times are put together."""
    found: dict[tuple[str, ...], FrameSentence] = {}
    for sentence in iter_framenet(folder):
        words = [ESCAPES.get(word, word) for word in sentence.words]
        frames = [frame for frame in sentence.frames if frame.target and frame.elements]
        if not frames:
            continue
        known = found.get(tuple(words))
        if known:
            known.frames.extend(frame for frame in frames if frame not in known.frames)
        else:
            found[tuple(words)] = sentence._replace(words=words, frames=frames)
    if not found:
        raise InputError(f"{folder} has no frames with elements; expected FrameNet's annotations")
    return list(found.values())


def parse_framenet(
    sentences: Sequence[FrameSentence],
    parser: OwnParser,
    *,
    random_state: int,
    n_sentences: int | None = None,
) -> RoleCorpus:
    """Return the frame elements of FrameNet in automatic parses, the most frequent roles only.

    Parameters
    ----------
    sentences : sequence of FrameSentence
        From `read_frames`.
    parser : OwnParser
    random_state : int
        Decides which sentences are in which part.
    n_sentences : int, optional
        Train on the first sentences only.
    """
    trees = parser.parse([sentence.words for sentence in sentences])
    parsed = [_find_elements(tree, each) for tree, each in zip(trees, sentences, strict=True)]
    roles = choose_roles([one.label for each in parsed for one in each.elements if one.argument])
    if not roles:
        raise InputError(
            f"FrameNet has no role with {LEAST_EXAMPLES} examples here; expected at least one such role"
        )
    order = np.random.default_rng(random_state).permutation(len(parsed)).tolist()
    bounds = [round(share * len(order)) for share in SHARES]
    ends = (order[: bounds[0]][:n_sentences], order[bounds[0] : bounds[1]], order[bounds[1] :])
    parts = [_make_part([parsed[number] for number in numbers], roles) for numbers in ends]
    corpus = RoleCorpus("FrameNet", *parts)
    for name in ("train", "test"):
        if not getattr(corpus, name).arguments:
            raise InputError(f"FrameNet has no elements left in {name}; expected at least one")
    return corpus


def choose_roles(labels: Sequence[str]) -> set[str]:
    """Return the most frequent roles.

    Examples
    --------
    >>> choose_roles(["Agent"] * 100 + ["Place"] * 99)
    {'Agent'}
    """
    ordered = sorted(Counter(labels).items(), key=lambda pair: (-pair[1], pair[0]))
    return {label for label, count in ordered[:N_ROLES] if count >= LEAST_EXAMPLES}


def _find_elements(tree: ConstTree, sentence: FrameSentence) -> _Parsed:
    places = node_places(shape_of(tree))
    elements = [
        _FrameElement(label, None if node is None else _make_argument(tree, frame, node, label))
        for frame in sentence.frames
        for label, start, end in frame.elements
        for node in [places.get((start, end))]
    ]
    return _Parsed(tree, len(sentence.frames), elements)


def _make_argument(tree: ConstTree, frame: FrameAnnotation, node: int, label: str) -> Argument:
    """Return an argument of the first target word; the lemma is the name of the lexical unit."""
    lemma = frame.lexical_unit.rpartition(".")[0].replace(" ", "_")
    return Argument(tree, frame.target[0].start, node, label, lemma)


def _make_part(parsed: Sequence[_Parsed], roles: set[str]) -> RolePart:
    elements = [one for each in parsed for one in each.elements if one.label in roles]
    arguments = [one.argument for one in elements if one.argument]
    n_predicates = sum(each.n_frames for each in parsed)
    return RolePart([each.tree for each in parsed], arguments, len(elements) - len(arguments), n_predicates)
