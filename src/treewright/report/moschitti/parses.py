"""Arguments of PropBank and FrameNet in automatic parses by a constituency parser."""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treewright.data.bracketed import read_brackets, write_brackets
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.documents import Folds, deal_folds
from treewright.data.framenet import FrameAnnotation, FrameSentence, iter_framenet
from treewright.errors import InputError
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.progress import report, silenced, track
from treewright.report.experiment import Inputs, ThreadedSettings
from treewright.report.moschitti.arguments import PARTS, PropBank, RoleCorpus, RolePart
from treewright.report.store import NAME_LENGTH, hash_file, load_parser, make_name
from treewright.report.turian.bench import ConstituentBench, ParserSystem
from treewright.srl.arguments import Argument, node_places, shape_of
from treewright.tagging.tagger import Tagger, jackknife

TRAINED = ParserSystem("shift-reduce", "predicted", None)
"""The parser that is trained if none is given."""
AT_A_TIME = 1000
"""Number of sentences parsed between two saves."""
FOLDS = 5
"""Jackknife folds for tagging the training sentences."""
N_ROLES = 18
"""Number of the most frequent FrameNet roles, as in the paper."""
LEAST_EXAMPLES = 100
"""Minimum number of examples of a FrameNet role; rarer roles are dropped."""
TRAINING_SHARE = 0.7
"""Fraction of FrameNet's sentences for training; the others are for testing, as in the paper."""
ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


class OwnParser:
    """A given or trained parser, with a tagger if it needs one; its output is stored.

    Parameters
    ----------
    settings : ThreadedSettings
        Settings of the experiment.
    inputs : Inputs
        Inputs of the experiment.
    gold : sequence of ConstTree
        Gold trees of the training sentences, for the tagger.
    model : Path, optional
        File of the parser (by default, one is trained).
    treebank : Path, optional
        Folder of the treebank that trains the parser (by default, the data folder of the experiment).
    comments : sequence of list of str, optional
        Comments of the training sentences, which identify their documents.
    folds : int, optional
        Number of jackknife folds for parsing the training sentences. Each fold is parsed by a parser that was
        trained on the other folds (by default, all sentences are parsed by one parser).
    """

    def __init__(
        self,
        settings: ThreadedSettings,
        inputs: Inputs,
        gold: Sequence[ConstTree],
        *,
        model: Path | None = None,
        treebank: Path | None = None,
        comments: Sequence[list[str]] | None = None,
        folds: int | None = None,
    ) -> None:
        self._settings, self._store = settings, inputs.store
        self._model, self._inputs = model, inputs._replace(data=treebank or inputs.data)
        self._trees, self._folds = list(gold), folds
        self._gold = [
            DepTree(tree.words(), xpos=tree.tags(), comments=lines)
            for tree, lines in zip(gold, comments or [[] for _ in gold], strict=True)
        ]

    @cached_property
    def _bench(self) -> ConstituentBench:
        return ConstituentBench(self._settings, self._inputs)

    @cached_property
    def parser(self) -> ConstituentParser:
        """The parser, trained if necessary."""
        if self._model is None:
            return self._bench.trained(TRAINED).parser
        return load_parser(self._model, ConstituentParser, n_jobs=self._settings.n_jobs)

    @cached_property
    def _identity(self) -> str:
        name = hash_file(self._model) if self._model else self._bench.name(TRAINED)
        return make_name(name, self._settings.random_state, FOLDS, self._folds, trees=(self._gold,))

    def parse_training(self) -> list[ConstTree]:
        """Return parses of the training sentences, with jackknifed tags and optionally jackknifed parsers."""
        if self._folds is None:
            return self._parse(self._gold, is_training=True)
        parts, description = self._dealt
        report(f"parses of the training sentences: {description}")
        found: dict[int, ConstTree] = {}
        for number, part in enumerate(track(parts, "parses of the training sentences", unit="folds"), 1):
            places = part.tolist()
            found.update(zip(places, self._parse_fold(number, places), strict=True))
        return [found[at] for at in range(len(self._gold))]

    @cached_property
    def _dealt(self) -> Folds:
        """The folds, which are the same for parsers and taggers."""
        n_folds = self._folds or FOLDS
        if len(self._gold) < n_folds:
            found = f"there are {len(self._gold)} training sentences for {n_folds} folds"
            raise InputError(f"{found}; expected at least one sentence per fold")
        return deal_folds(self._gold, n_folds, random_state=self._settings.random_state)

    def _parse_fold(self, number: int, places: Sequence[int]) -> list[ConstTree]:
        """Return parses of the sentences of a fold by a parser that was trained on the other folds."""
        aside = set(places)
        rest = [tree for at, tree in enumerate(self._trees) if at not in aside]
        made = self.parser.with_params() if self._model else self._bench.make_parser(TRAINED)
        dev = self._bench.treebank.dev
        name = made.identity(rest, dev)[:NAME_LENGTH]
        needs_tags = made.tags == "gold"
        path = self._store.path(
            "parses",
            f"{make_name(name, needs_tags, self._identity, trees=([self._gold[at] for at in places],))}.mrg",
        )
        if not path.exists():
            about = f"{self._bench.treebank.name}: training the parser for fold {number}"
            model = self._store.train(name, lambda: made, lambda: (rest, dev or None), about=about)
            parser = load_parser(model, ConstituentParser, n_jobs=self._settings.n_jobs)
            source = self._tagged_training if needs_tags else self._gold
            write_brackets(parser.predict([source[at] for at in places]), path)
            report(f"parsed the {len(places):,} sentences of fold {number}")
        return read_brackets(str(path), functions=True, traces=True)

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[ConstTree]:
        """Return parses of sentences; parse them unless the result is stored."""
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
        n_folds = self._folds or FOLDS
        if not self.parser.needs_tags or len(self._gold) < n_folds:
            return [DepTree(tree.words, xpos=tree.xpos) for tree in self._gold]
        report("tagging the training sentences")
        return jackknife(
            self._gold, folds=n_folds, n_jobs=self._settings.n_jobs, random_state=self._settings.random_state
        )

    @cached_property
    def _tagger(self) -> Tagger:
        with silenced():
            return Tagger(random_state=self._settings.random_state).fit(self._gold)

    def _tag(self, sentences: Sequence[DepTree]) -> Sequence[DepTree]:
        return self._tagger.predict(sentences) if self.parser.needs_tags else sentences

    def describe(self) -> str:
        """Describe how the parser was trained."""
        path, parser = self._model, self.parser
        origin = (
            f"pretrained model {path.name}"
            if path
            else f"trained on {self._bench.treebank.name}, {len(self._bench.treebank.train):,} sentences"
        )
        options = [f"{name.replace('_', ' ')} {getattr(parser, name)}" for name in ("strategy", "runs")]
        tags = f"a tagger trained on {len(self._gold):,} sentences" if parser.needs_tags else "its own tagger"
        return ", ".join([origin, *options, f"tags by {tags}"])

    def describe_training(self) -> str:
        """Describe how the training sentences were parsed."""
        if self._folds is None:
            return (
                "If the parser was trained on sentences of the role training set, it makes fewer errors on "
                "them than on the test set."
            )
        return (
            "The role training set was parsed by parsers and taggers that were not trained on its sentences: "
            f"{self._dealt.description}."
        )


def parse_propbank(bank: PropBank, parser: OwnParser) -> RoleCorpus:
    """Return the arguments of verbs in automatic parses."""
    trees = {"train": parser.parse_training()}
    for name in PARTS[1:]:
        trees[name] = parser.parse([sentence.words() for sentence in bank.trees[name]])
    return bank.corpus(trees)


class _FrameElement(NamedTuple):
    """A frame element; `argument` is None if it is not a constituent."""

    label: str
    argument: Argument | None


class _Parsed(NamedTuple):
    """A sentence with its frames and their elements."""

    tree: ConstTree
    n_frames: int
    elements: list[_FrameElement]


def read_frames(folder: Path, names: Collection[str] | None = None) -> list[FrameSentence]:
    """Return the sentences with frame elements; repeated sentences are merged.

    Parameters
    ----------
    folder : Path
        FrameNet's release.
    names : collection of str, optional
        Names of frames to keep (by default, all).
    """
    found: dict[tuple[str, ...], FrameSentence] = {}
    met: set[str] = set()
    for sentence in iter_framenet(folder):
        words = [ESCAPES.get(word, word) for word in sentence.words]
        frames = [frame for frame in sentence.frames if frame.target and frame.elements]
        met.update(frame.frame for frame in frames)
        frames = [frame for frame in frames if names is None or frame.frame in names]
        if not frames:
            continue
        known = found.get(tuple(words))
        if known:
            known.frames.extend(frame for frame in frames if frame not in known.frames)
        else:
            found[tuple(words)] = sentence._replace(words=words, frames=frames)
    for name in names or ():
        if met and name not in met:
            raise InputError(f"frame is {name!r}; expected a frame with annotated elements in {folder}")
    if not found:
        raise InputError(f"{folder} has no frames with elements; expected FrameNet's annotations")
    return list(found.values())


def parse_framenet(
    sentences: Sequence[FrameSentence],
    parser: OwnParser,
    *,
    random_state: int,
    n_sentences: int | None = None,
    least_examples: int | None = None,
) -> RoleCorpus:
    """Return the frame elements of the most frequent FrameNet roles in automatic parses.

    Parameters
    ----------
    sentences : sequence of FrameSentence
        Sentences from `read_frames`.
    parser : OwnParser
        The parser.
    random_state : int
        Seed of the split into training and test set.
    n_sentences : int, optional
        Number of training sentences (by default, all).
    least_examples : int, optional
        Minimum number of examples of a role (by default, `LEAST_EXAMPLES`).
    """
    least = LEAST_EXAMPLES if least_examples is None else least_examples
    trees = parser.parse([sentence.words for sentence in sentences])
    parsed = [_find_elements(tree, each) for tree, each in zip(trees, sentences, strict=True)]
    roles = choose_roles([one.label for each in parsed for one in each.elements if one.argument], least)
    if not roles:
        raise InputError(
            f"no FrameNet role has {least} examples in these parses; expected at least one such role"
        )
    order = np.random.default_rng(random_state).permutation(len(parsed)).tolist()
    end = round(TRAINING_SHARE * len(order))
    chosen = {"train": order[:end][:n_sentences], "dev": [], "test": order[end:]}
    parts = (_make_part([parsed[number] for number in chosen[name]], roles) for name in PARTS)
    corpus = RoleCorpus("FrameNet", *parts)
    for name in ("train", "test"):
        if not getattr(corpus, name).arguments:
            raise InputError(f"the {name} set of FrameNet has no frame elements; expected at least one")
    return corpus


def choose_roles(labels: Sequence[str], least: int) -> set[str]:
    """Return the most frequent roles that have at least `least` examples.

    Examples
    --------
    >>> choose_roles(["Agent"] * 100 + ["Place"] * 99, 100)
    {'Agent'}
    """
    ordered = sorted(Counter(labels).items(), key=lambda pair: (-pair[1], pair[0]))
    return {label for label, count in ordered[:N_ROLES] if count >= least}


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
    """Return an argument of the first target word; its predicate has the lemma of the lexical unit."""
    lemma = frame.lexical_unit.rpartition(".")[0].replace(" ", "_")
    return Argument(tree, frame.target[0].start, node, label, lemma)


def _make_part(parsed: Sequence[_Parsed], roles: set[str]) -> RolePart:
    elements = [one for each in parsed for one in each.elements if one.label in roles]
    arguments = [one.argument for one in elements if one.argument]
    n_predicates = sum(each.n_frames for each in parsed)
    return RolePart([each.tree for each in parsed], arguments, len(elements) - len(arguments), n_predicates)
