"""What constituency parsers and their rerankers do with files: brackets, CoNLL-U or text in, brackets out."""

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
from treewright.parsing.sentences import read_treebanks, split_dev
from treewright.tagging.tagger import Tagger

Sentence: TypeAlias = ConstTree | DepTree


class ConstituentAnnotator(Annotator):
    """A model that finds constituency trees; subclasses offer `kbest`."""

    finds = "constituents"
    can = frozenset({"k", "tags", "draw", "raw", "language"})
    n_at_once = 100
    n_sent = 50
    random_state: int
    tagger_: Tagger | None

    @staticmethod
    def read_training(
        train: FileName, dev: FileName | None = None, *, max_length: Count | None = None
    ) -> tuple[list[ConstTree], list[ConstTree] | None]:
        """Read what `fit` learns from.

        Parameters
        ----------
        train : str
            Treebank in Penn brackets.
        dev : str, optional
            Treebank for early stopping (a tenth of TRAIN by default).
        max_length : int, optional
            Maximum number of words per sentence, with punctuation.
        """
        return read_treebanks(train, dev, max_length=max_length)

    def fit(
        self,
        trees: Sequence[ConstTree],
        dev: Sequence[ConstTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from a treebank.

        Parameters
        ----------
        trees : sequence of ConstTree
        dev : sequence of ConstTree, optional
            By whose score the best step of training is chosen; without them, by that of a tenth of the
            trees, which are not learnt from.
        checkpoint : path, optional
            A folder in which each step is kept. If it exists, training goes on from it and ends as if it had
            not been interrupted.
        """
        self._check()
        training, held_out = split_dev(trees, dev, self.random_state)
        # What is interrupted leaves the model as it was.
        fresh = self.with_params()
        fresh._learn(training, held_out, None if checkpoint is None else Path(checkpoint))
        return self.take_fitted(fresh)

    def _check(self) -> None:
        """Check the parameters."""
        raise NotImplementedError

    def _learn(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> None:
        """Learn from trees with words; keep each step in a folder, if there is one."""
        raise NotImplementedError

    @property
    def own_tagger(self) -> Tagger | None:
        """The tagger inside the model, or None."""
        return self.tagger_

    def kbest(self, sentences: Sequence[Any], k: int = 20, *, n_jobs: int | None = None) -> list[list[Any]]:
        """Return the best trees of each sentence, with their scores."""
        raise NotImplementedError

    def shares(self, scores: Sequence[float]) -> Sequence[float | None]:
        """Return how probable trees are among themselves, where scores tell it."""
        return [None] * len(scores)

    def annotate(self, sentences: Sequence[Any], *, k: int = 1) -> list[list[Analysis]]:
        """Return up to `k` trees of each sentence, the best first."""
        return [
            [
                Analysis(parse.tree, parse.score, share)
                for parse, share in zip(parses, self.shares([each.score for each in parses]), strict=True)
            ]
            for parses in self.kbest(sentences, k)
        ]

    def open_sentences(self, source: str, request: Request) -> AbstractContextManager[Iterator[Sentence]]:
        """Open a file as sentences that have what the parser needs: brackets, CoNLL-U or plain text."""
        return self._open_checked(source, request)

    @contextmanager
    def _open_checked(self, source: str, request: Request) -> Iterator[Iterator[Sentence]]:
        if request.raw or request.language is not None:
            if self.needs_tags:
                raise missing_tags(f"{source} is plain text, which has no tags", self, expected="tags")
            yield self._checked(split_by_rules(source, request.language or "xx"), source)
            return
        remedy = "" if self.needs_tags else ", or --raw (needs the extra spacy)"
        with open_told(source, kinds=("constituents", "dependencies"), remedy=remedy) as (form, stream):
            is_brackets = form.kind == "constituents"
            read = form.read(stream) if is_brackets else form.read(stream, require_heads=False)
            yield self._checked(read, source)

    def _checked(self, sentences: Iterable[Sentence], source: str) -> Iterator[Sentence]:
        """Hand on the sentences if they have what the parser needs and brackets can hold."""
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
        """Return what writes a tree a line, k-best trees with sentence, rank and score before them."""
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
    """Return words and tags as treebanks in brackets write them, which is how the parser knows them."""
    return DepTree([escape(word) for word in sentence.words], xpos=[escape(tag) for tag in sentence.xpos])


def _show_best(number: int, analyses: list[Analysis]) -> str:
    return format_line(analyses[0].tree)


def _show_list(number: int, analyses: list[Analysis]) -> str:
    ranked = enumerate(analyses, start=1)
    return "".join(f"{number}\t{rank}\t{each.score:.4f}\t{each.tree}\n" for rank, each in ranked)
