"""Questions with their classes, parsed by parsers that are given or trained, and kept so."""

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from treewright._version import __version__
from treewright.checkpoint import fingerprint
from treewright.data.bracketed import read_brackets, write_brackets
from treewright.data.conllu import read_conllu, write_conllu
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.errors import FormatError, InputError, quote
from treewright.model import PARAMS
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.parsing.dependency.parser import DependencyParser
from treewright.persist import load_state
from treewright.progress import report
from treewright.report.constituents import find_treebank, read_treebank
from treewright.report.corpora import Corpus, find_corpora, find_corpus, read_corpus
from treewright.report.experiment import NAME_LENGTH, Inputs, Settings

Parser = TypeVar("Parser", ConstituentParser, DependencyParser)
LINE = re.compile(r"([^\s:]+):(\S+)\s+(\S.*)")
DESCRIBED = {"constituent": ("strategy", "runs", "lowest_penalty"), "dependency": ("order", "runs", "epochs")}
"""Options of parsers that tables tell of."""
EXPECTED = "a class, a colon, a finer class, a blank and a question, as in NUM:date When was Rome founded ?"


@dataclass(frozen=True)
class QuestionSettings(Settings):
    """The settings of the classification of questions.

    Attributes
    ----------
    treebank : Path, optional
        Folder of the one treebank that parsers and vectors of words learn from, in brackets and in CoNLL-U
        as far as these are needed; the folder of the data without it.
    constituent_parser, dependency_parser : Path, optional
        Models; without one, a parser is trained.
    """

    treebank: Path | None = None
    constituent_parser: Path | None = None
    dependency_parser: Path | None = None


class Question(NamedTuple):
    """A question with its class, such as NUM, and its finer one."""

    label: str
    fine: str
    words: tuple[str, ...]


class Questions(NamedTuple):
    """Questions in two parts."""

    train: list[Question]
    test: list[Question]

    @property
    def all(self) -> list[Question]:
        """Those to train on, then those to test on."""
        return [*self.train, *self.test]


class Parses(NamedTuple):
    """A tree of each kind for each question, those to train on first."""

    constituents: list[ConstTree]
    dependencies: list[DepTree]


def find_questions(data: Path) -> tuple[Path, Path]:
    """Return the files train.txt and test.txt of a folder or of the one in it that has both."""
    if not data.exists():
        raise InputError(f"{data} does not exist; expected a folder with train.txt and test.txt")
    found = [path.parent for path in sorted(data.rglob("train.txt")) if path.with_name("test.txt").is_file()]
    if len(found) != 1:
        raise InputError(f"{data} has {len(found)} pairs of train.txt and test.txt; expected one")
    return found[0] / "train.txt", found[0] / "test.txt"


def read_questions(path: Path) -> list[Question]:
    """Read questions in UTF-8 or, if it is not that, in Latin 1; each line as in ``NUM:date When ... ?``."""
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
        questions.append(Question(match[1], match[2], tuple(match[3].split())))
    if not questions:
        raise InputError(f"{path} has no questions; expected at least one")
    return questions


class Readers:
    """The two parsers of an experiment, and what they make of questions, which is kept."""

    def __init__(self, inputs: Inputs) -> None:
        assert isinstance(inputs.settings, QuestionSettings)
        self.settings = inputs.settings
        self.questions = self._read(inputs.data)
        self._cache = inputs.cache
        self._folder = self.settings.treebank or inputs.data

    def _read(self, data: Path) -> Questions:
        train, test = find_questions(data)
        return Questions(read_questions(train)[: self.settings.n_sentences], read_questions(test))

    @cached_property
    def corpus(self) -> Corpus | None:
        """The treebank that vectors and the dependency parser learn from; none if none is needed or there."""
        is_needed = self.settings.dependency_parser is None or self.settings.treebank is not None
        if not is_needed:
            try:
                find_corpora(self._folder)
            except InputError:
                return None
        return read_corpus(find_corpus(self._folder), self.settings.n_sentences)

    def parses(self) -> Parses:
        """Return the trees of all questions, which are parsed if they are not kept."""
        folder = self._cache / "parses"
        folder.mkdir(parents=True, exist_ok=True)
        brackets, columns = (folder / f"{self.name}.{suffix}" for suffix in ("mrg", "conllu"))
        if not (brackets.exists() and columns.exists()):
            dependencies = self._parse_dependencies()
            constituents = self._parse_constituents(dependencies)
            write_conllu(dependencies, columns)
            write_brackets(constituents, brackets)
        return Parses(read_brackets(brackets, functions=True, traces=True), read_conllu(columns))

    @cached_property
    def name(self) -> str:
        """Under which trees are kept: another one for other parsers or questions."""
        words = [DepTree(question.words) for question in self.questions.all]
        return fingerprint([__version__, *self._names.values()], words)[:NAME_LENGTH]

    @cached_property
    def _names(self) -> dict[str, str]:
        names = {}
        for kind in DESCRIBED:
            path = getattr(self.settings, f"{kind}_parser")
            names[kind] = hash_file(path) if path else getattr(self, f"_{kind}_identity")()
        return names

    def _constituent_identity(self) -> str:
        treebank = read_treebank(find_treebank(self._folder), self.settings.n_sentences)
        return self._untrained_constituent().identity(treebank.train, treebank.dev)

    def _dependency_identity(self) -> str:
        assert self.corpus
        parser = self.settings.make_parser()
        options = [__version__, *parser.result_params().items()]
        return fingerprint(options, self.corpus.train, self.corpus.dev)

    def _untrained_constituent(self) -> ConstituentParser:
        return ConstituentParser(
            tags="predicted", random_state=self.settings.random_state, n_jobs=self.settings.n_jobs
        )

    def _parse_dependencies(self) -> list[DepTree]:
        parser = self._parser("dependency", DependencyParser, self._train_dependency)
        if parser.tags != "predicted":
            path = self.settings.dependency_parser
            raise InputError(
                f"{path} is a parser that needs tags; expected one trained with --tags predicted"
            )
        report(f"{len(self.questions.all):,} questions: dependencies")
        trees: list[DepTree] = parser.predict([DepTree(question.words) for question in self.questions.all])
        return trees

    def _parse_constituents(self, tagged: Sequence[DepTree]) -> list[ConstTree]:
        """Parse questions; a parser that needs tags is given those of the other one's tagger."""
        parser = self._parser("constituent", ConstituentParser, self._train_constituent)
        report(f"{len(tagged):,} questions: constituents")
        trees: list[ConstTree] = parser.predict(tagged)
        return trees

    def _parser(self, kind: str, model: type[Any], train: Callable[[Path], Any]) -> Any:  # noqa: ANN401
        """Return a parser: the one that is given, or one that is trained if it is not kept."""
        path: Path | None = getattr(self.settings, f"{kind}_parser")
        if path is None:
            folder = self._cache / "parsers"
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{self._names[kind][:NAME_LENGTH]}.tw"
            if not path.exists():
                report(f"training the {kind} parser")
                unfinished = self._cache / "unfinished" / path.stem
                train(unfinished).save(path)
                shutil.rmtree(unfinished, ignore_errors=True)
        return load_parser(path, model, n_jobs=self.settings.n_jobs)

    def _train_dependency(self, unfinished: Path) -> DependencyParser:
        assert self.corpus
        parser = self.settings.make_parser()
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        return parser.fit(self.corpus.train, self.corpus.dev, checkpoint=unfinished)

    def _train_constituent(self, unfinished: Path) -> ConstituentParser:
        treebank = read_treebank(find_treebank(self._folder), self.settings.n_sentences)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        return self._untrained_constituent().fit(treebank.train, treebank.dev or None, checkpoint=unfinished)

    def describe(self) -> dict[str, str]:
        """Say how the parsers were made."""
        told = {}
        for kind, names in DESCRIBED.items():
            path = getattr(self.settings, f"{kind}_parser")
            options = _load_options(path) if path else vars(self._untrained(kind))
            origin = f"the model {path.name}, trained before" if path else self._describe_training(kind)
            shown = [f"{name.replace('_', ' ')} {options[name]}" for name in names]
            own = (
                "its own tagger" if options["tags"] == "predicted" else "the tagger of the dependency parser"
            )
            told[f"{kind} parser"] = ", ".join([origin, *shown, f"tags by {own}"])
        return told

    def _untrained(self, kind: str) -> ConstituentParser | DependencyParser:
        return self._untrained_constituent() if kind == "constituent" else self.settings.make_parser()

    def _describe_training(self, kind: str) -> str:
        if kind == "constituent":
            treebank = read_treebank(find_treebank(self._folder), self.settings.n_sentences)
            return f"trained on {treebank.name}, {len(treebank.train):,} sentences"
        assert self.corpus
        return f"trained on {self.corpus.name}, {len(self.corpus.train):,} sentences"


def _load_options(path: Path) -> dict[str, Any]:
    values = load_state(path).values
    options: dict[str, Any] = values.get(PARAMS) or values["options"]
    return options


def load_parser(path: Path, model: type[Parser], *, n_jobs: int) -> Parser:
    """Return a parser that was saved, and is of some class."""
    state = load_state(path)
    if state.kind != model.__name__:
        raise InputError(f"{path} is a {state.kind}; expected a {model.__name__}")
    parser = model.from_state(state)
    parser.n_jobs = n_jobs
    return parser


def hash_file(path: Path) -> str:
    """Return a name for what is in a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
