"""Input (brackets, CoNLL-U or plain text) and output (brackets) of constituency parsers and rerankers."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias

from treewright._typing import Count, FileName
from treewright.annotation.contract import Analysis, Annotator, Formatter, Request, draw_analyses
from treewright.annotation.raw_text import split_by_rules
from treewright.annotation.sentences import missing_tags
from treewright.data.bracketed import format_line
from treewright.data.consttree import LABEL, ConstTree, escape
from treewright.data.deptree import DepTree
from treewright.data.formats import open_told
from treewright.errors import InputError, quote
from treewright.model import seeded
from treewright.parsing.sentences import read_treebanks, split_dev
from treewright.tagging.tagger import Tagger

Sentence: TypeAlias = ConstTree | DepTree


class ConstituentAnnotator(Annotator):
    """A model that predicts constituency trees; subclasses implement `kbest`."""

    finds = "constituents"
    can = frozenset({"k", "tags", "draw", "raw", "language"})
    n_at_once = 100
    n_sent = 50
    tagger_: Tagger | None

    @staticmethod
    def read_training(
        train: FileName, dev: FileName | None = None, *, max_length: Count | None = None
    ) -> tuple[list[ConstTree], list[ConstTree] | None]:
        """Read the training and development data for `fit`.

        Parameters
        ----------
        train : str
            Treebank in Penn brackets.
        dev : str, optional
            Treebank for early stopping (default: a tenth of TRAIN).
        max_length : int, optional
            Maximum number of words per sentence, including punctuation.
        """
        return read_treebanks(train, dev, max_length=max_length)

    @seeded
    def fit(
        self,
        trees: Sequence[ConstTree],
        dev: Sequence[ConstTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a treebank.

        Parameters
        ----------
        trees : sequence of ConstTree
            Training trees.
        dev : sequence of ConstTree, optional
            Development trees for early stopping. Without them, a tenth of the training trees is held out.
        checkpoint : path, optional
            Folder that stores each step. If it exists, training resumes from it, with the same result
            as without an interruption.
        """
        self._check()
        training, held_out = split_dev(trees, dev, self.random_state)
        # An interrupted training leaves the model unchanged.
        fresh = self.with_params()
        fresh._learn(training, held_out, None if checkpoint is None else Path(checkpoint))
        return self.take_fitted(fresh)

    def _check(self) -> None:
        """Validate the parameters."""
        raise NotImplementedError

    def _learn(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> None:
        """Train on trees that have words; store each step in the folder `steps`, if one is given."""
        raise NotImplementedError

    @property
    def own_tagger(self) -> Tagger | None:
        """The model's own tagger, or None."""
        return self.tagger_

    def kbest(self, sentences: Sequence[Any], k: int = 20, *, n_jobs: int | None = None) -> list[list[Any]]:
        """Return the k-best trees of each sentence with their scores."""
        raise NotImplementedError

    def shares(self, scores: Sequence[float]) -> Sequence[float | None]:
        """Return the probability of each tree, or None for each if scores do not determine probabilities."""
        return [None] * len(scores)

    def annotate(self, sentences: Sequence[Any], *, k: int = 1) -> list[list[Analysis]]:
        """Return the predicted tree of each sentence, or its k-best trees, the best first.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs.
        k : int
            Maximum number of trees per sentence.
        """
        return self._analyse(sentences, k)

    def _analyse(self, sentences: Sequence[Any], k: int) -> list[list[Analysis]]:
        """Return the predicted tree of each sentence, or its k-best trees if `k` is above 1."""
        return self._describe(self.kbest(sentences, k))

    def _describe(self, lists: Sequence[Sequence[Any]]) -> list[list[Analysis]]:
        """Return scored trees as analyses with probabilities."""
        return [
            [
                Analysis(parse.tree, parse.score, share)
                for parse, share in zip(parses, self.shares([each.score for each in parses]), strict=True)
            ]
            for parses in lists
        ]

    def open_sentences(self, source: str, request: Request) -> AbstractContextManager[Iterator[Sentence]]:
        """Open a file in brackets, CoNLL-U or plain text, and check that it has all required tags."""
        return self._open_checked(source, request)

    @contextmanager
    def _open_checked(self, source: str, request: Request) -> Iterator[Iterator[Sentence]]:
        if request.raw or request.language is not None:
            if self.needs_tags:
                raise missing_tags(f"{source} is plain text, which has no tags", self, expected="tags")
            yield self._checked(split_by_rules(source, request.language or "xx"), source)
            return
        remedy = "" if self.needs_tags else ", or --raw (needs the spacy extra)"
        with open_told(source, kinds=("constituents", "dependencies"), remedy=remedy) as (form, stream):
            is_brackets = form.kind == "constituents"
            read = form.read(stream) if is_brackets else form.read(stream, require_heads=False)
            yield self._checked(read, source)

    def _checked(self, sentences: Iterable[Sentence], source: str) -> Iterator[Sentence]:
        """Yield sentences; check that they have the required tags and can be written as brackets."""
        for number, sentence in enumerate(sentences, start=1):
            if isinstance(sentence, ConstTree):
                yield sentence
            else:
                place = f"{source}: sentence {number}"
                _check_words(sentence, place)
                if self.needs_tags and set(sentence.xpos) == {"_"}:
                    raise missing_tags(f"{place} has no tags", self, " in XPOS", expected="tags")
                yield _escaped(sentence)

    def make_formatter(self, target: str, request: Request, begun: Path | None) -> Formatter:
        """Return a formatter that writes one tree per line, with sentence number, rank and score if k > 1."""
        if request.draw:
            return partial(draw_analyses, target, None)
        return _show_best if request.k == 1 else _show_list


def _check_words(sentence: DepTree, place: str) -> None:
    if not len(sentence):
        raise InputError(f"{place} has no words; expected at least one")
    for text in (*sentence.words, *sentence.xpos):
        if not LABEL.fullmatch(text):
            raise InputError(f"{place} has {quote(text)}; expected words and tags without white space")


def _escaped(sentence: DepTree) -> DepTree:
    """Return a sentence with words and tags escaped as in bracketed treebanks."""
    return DepTree([escape(word) for word in sentence.words], xpos=[escape(tag) for tag in sentence.xpos])


def _show_best(number: int, analyses: list[Analysis]) -> str:
    return format_line(analyses[0].tree)


def _show_list(number: int, analyses: list[Analysis]) -> str:
    ranked = enumerate(analyses, start=1)
    return "".join(f"{number}\t{rank}\t{each.score:.4f}\t{each.tree}\n" for rank, each in ranked)
