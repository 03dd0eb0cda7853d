"""Questions with their classes, parsed by given or trained parsers; parses are stored."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from treewright._typing import Folder
from treewright.data.bracketed import read_brackets, write_brackets
from treewright.data.conllu import read_conllu, write_conllu
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.errors import FormatError, InputError, quote
from treewright.model import PARAMS, load_state
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.parsing.dependency.parser import DependencyParser
from treewright.progress import report
from treewright.report.corpora import (
    ConstituencyTreebank,
    DependencyTreebank,
    find_corpora,
    find_corpus,
    find_treebank,
    read_corpus,
    read_treebank,
)
from treewright.report.experiment import Inputs
from treewright.report.qian_liu.bench import DependencySettings
from treewright.report.store import NAME_LENGTH, hash_file, load_parser, make_name

Parser = TypeVar("Parser", ConstituentParser, DependencyParser)
LINE = re.compile(r"([^\s:]+):(\S+)\s+(\S.*)")
DESCRIBED = {"constituent": ("strategy", "runs", "lowest_penalty"), "dependency": ("order", "runs", "epochs")}
"""Options of parsers shown in tables."""
EXPECTED = "CLASS:SUBCLASS and a question, such as NUM:date When was Rome founded ?"


@dataclass(frozen=True)
class QuestionSettings(DependencySettings):
    """Settings of question classification.

    Parameters
    ----------
    systems : tuple of str, optional
        Rows of the table, such as bag,bag+sst (default: all).
    treebank : Path, optional
        Folder of the treebank that trains parsers and word vectors (default: --data).
    constituent_parser : Path, optional
        Trained constituency parser (by default, one is trained).
    dependency_parser : Path, optional
        Dependency parser trained with --tags predicted (by default, one is trained).
    """

    systems: tuple[str, ...] | None = None
    treebank: Folder | None = None
    constituent_parser: Path | None = None
    dependency_parser: Path | None = None


class LabelledQuestion(NamedTuple):
    """A question with its class, such as NUM, and its subclass."""

    label: str
    fine: str
    words: tuple[str, ...]


class Questions(NamedTuple):
    """Training and test questions."""

    train: list[LabelledQuestion]
    test: list[LabelledQuestion]

    @property
    def all(self) -> list[LabelledQuestion]:
        """The training questions, followed by the test questions."""
        return [*self.train, *self.test]


class Parses(NamedTuple):
    """A constituency and a dependency tree for each question, training questions first."""

    constituents: list[ConstTree]
    dependencies: list[DepTree]


def find_questions(data: Path) -> tuple[Path, Path]:
    """Return the files train.txt and test.txt in a folder, or in its only subfolder that has both."""
    if not data.exists():
        raise InputError(f"{data} does not exist; expected a folder with train.txt and test.txt")
    found = [path.parent for path in sorted(data.rglob("train.txt")) if path.with_name("test.txt").is_file()]
    if len(found) != 1:
        raise InputError(f"{data} has {len(found)} pairs of train.txt and test.txt; expected one")
    return found[0] / "train.txt", found[0] / "test.txt"


def read_questions(path: Path) -> list[LabelledQuestion]:
    """Read questions in UTF-8, or else Latin-1, in lines such as ``NUM:date When ... ?``."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    questions = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        match = LINE.fullmatch(line.strip())
        if not match:
            raise FormatError(str(path), number, f"the line is {quote(line.strip())}", EXPECTED)
        questions.append(LabelledQuestion(match[1], match[2], tuple(match[3].split())))
    if not questions:
        raise InputError(f"{path} has no questions; expected at least one")
    return questions


class Readers:
    """The two parsers of an experiment, and their parses of the questions, which are stored."""

    def __init__(self, settings: QuestionSettings, inputs: Inputs) -> None:
        self.settings = settings
        self.questions = self._read(inputs.data)
        self._store = inputs.store
        self._folder = settings.treebank or inputs.data

    def _read(self, data: Path) -> Questions:
        train, test = find_questions(data)
        return Questions(read_questions(train)[: self.settings.n_sentences], read_questions(test))

    @cached_property
    def corpus(self) -> DependencyTreebank | None:
        """The training treebank of word vectors and the dependency parser; None if not needed or missing."""
        is_needed = self.settings.dependency_parser is None or self.settings.treebank is not None
        if not is_needed:
            try:
                find_corpora(self._folder)
            except InputError:
                return None
        return read_corpus(find_corpus(self._folder), self.settings.n_sentences)

    def parses(self) -> Parses:
        """Return the trees of all questions; parse them unless they are stored."""
        brackets, columns = (
            self._store.path("parses", f"{self.name}.{suffix}") for suffix in ("mrg", "conllu")
        )
        if not (brackets.exists() and columns.exists()):
            dependencies = self._parse_dependencies()
            constituents = self._parse_constituents(dependencies)
            write_conllu(dependencies, columns)
            write_brackets(constituents, brackets)
        return Parses(read_brackets(brackets, functions=True, traces=True), read_conllu(columns))

    @cached_property
    def name(self) -> str:
        """Name under which trees are stored; it depends on the parsers and questions."""
        words = [DepTree(question.words) for question in self.questions.all]
        return make_name(*self._names.values(), trees=(words,))

    @cached_property
    def _names(self) -> dict[str, str]:
        names = {}
        for kind in DESCRIBED:
            path = getattr(self.settings, f"{kind}_parser")
            names[kind] = hash_file(path) if path else getattr(self, f"_{kind}_identity")()
        return names

    def _constituent_identity(self) -> str:
        treebank = self._treebank
        return self._untrained_constituent().identity(treebank.train, treebank.dev)[:NAME_LENGTH]

    def _dependency_identity(self) -> str:
        assert self.corpus
        return self.settings.parser_name(self.corpus)

    @cached_property
    def _treebank(self) -> ConstituencyTreebank:
        return read_treebank(find_treebank(self._folder), self.settings.n_sentences)

    def _untrained_constituent(self) -> ConstituentParser:
        return ConstituentParser(
            tags="predicted", random_state=self.settings.random_state, n_jobs=self.settings.n_jobs
        )

    def _parse_dependencies(self) -> list[DepTree]:
        parser = self._parser("dependency", DependencyParser)
        if parser.tags != "predicted":
            path = self.settings.dependency_parser
            raise InputError(f"{path} needs tags; expected a parser trained with --tags predicted")
        report(f"{len(self.questions.all):,} questions: dependencies")
        trees: list[DepTree] = parser.predict([DepTree(question.words) for question in self.questions.all])
        return trees

    def _parse_constituents(self, tagged: Sequence[DepTree]) -> list[ConstTree]:
        """Parse questions; a parser that needs tags gets them from the dependency parser's tagger."""
        parser = self._parser("constituent", ConstituentParser)
        report(f"{len(tagged):,} questions: constituents")
        trees: list[ConstTree] = parser.predict(tagged)
        return trees

    def _parser(self, kind: str, model: type[Parser]) -> Parser:
        """Return the given parser; if there is none, train and store one."""
        path = getattr(self.settings, f"{kind}_parser") or self._store.train(
            self._names[kind],
            lambda: self._untrained(kind),
            lambda: self._parts(kind),
            about=f"training the {kind} parser",
        )
        return load_parser(path, model, n_jobs=self.settings.n_jobs)

    def _parts(self, kind: str) -> tuple[Any, Any]:
        """Return the training trees of a parser, and the dev trees if there are any."""
        if kind == "constituent":
            return self._treebank.train, self._treebank.dev or None
        assert self.corpus
        return self.corpus.train, self.corpus.dev

    def describe(self) -> dict[str, str]:
        """Describe how the parsers were trained."""
        told = {}
        for kind, names in DESCRIBED.items():
            path = getattr(self.settings, f"{kind}_parser")
            options = load_state(path).values[PARAMS] if path else vars(self._untrained(kind))
            origin = f"pretrained model {path.name}" if path else self._describe_training(kind)
            shown = [f"{name.replace('_', ' ')} {options[name]}" for name in names]
            own = (
                "its own tagger" if options["tags"] == "predicted" else "the tagger of the dependency parser"
            )
            told[f"{kind} parser"] = ", ".join([origin, *shown, f"tags by {own}"])
        return told

    def _untrained(self, kind: str) -> ConstituentParser | DependencyParser:
        return self._untrained_constituent() if kind == "constituent" else self.settings.make_parser()

    def _describe_training(self, kind: str) -> str:
        bank = self._treebank if kind == "constituent" else self.corpus
        assert bank
        return f"trained on {bank.name}, {len(bank.train):,} sentences"
