"""The commands `treewright train ...`; their options are the parameters of the models."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from treewright._validate import check_params, constructor_hints
from treewright.commands.options import BaseCommand, LazyCommands, import_here, make_command
from treewright.commands.signatures import Chosen, Options, model_types, parameter_texts, takes
from treewright.commands.work import (
    begin_checkpoint,
    check_results,
    check_writable,
    open_cluster,
    running,
    say,
)
from treewright.errors import InputError
from treewright.model import REGISTRY


class Kind(NamedTuple):
    """A kind of model: its class ``"module:Class"``, and optionally the class of a reranker.

    The class has a method `read_training`, which declares the training files and returns the arguments of
    `fit`. If `--rerank` takes a value, `rerank_by` names the reranker's parameter that this value sets. A
    composite model lists the classes of its components, such as a tokenizer and a parser, or a neural scorer.
    """

    model: str
    help: str
    example: str
    reranker: str | None = None
    rerank_by: str | None = None
    parser: str | None = None
    tokenizer: str | None = None
    network: str | None = None


PARSER = "treewright.parsing.dependency.parser:DependencyParser"
NETWORK = "treewright.parsing.neural.scorer:NeuralScorer"
DEPENDENCIES, TREES = (
    "treewright.rerank.reranker:DependencyReranker",
    "treewright.rerank.constituents:ConstituentReranker",
)
KINDS = {
    "pipeline": Kind(
        "treewright.pipeline:Pipeline",
        "Train a tokenizer, a tagger and a dependency parser as one model.",
        "UD_Hungarian-Szeged --model hu.tw",
        DEPENDENCIES,
        parser=PARSER,
        tokenizer="treewright.tagging.tokenizer:Tokenizer",
        network=NETWORK,
    ),
    "dependency": Kind(
        PARSER,
        "Train a dependency parser, and a reranker with --rerank.",
        "train.conllu --dev dev.conllu --model parser.tw --rerank",
        DEPENDENCIES,
        network=NETWORK,
    ),
    "constituent": Kind(
        "treewright.parsing.constituent.parser:ConstituentParser",
        "Train a constituency parser, and a reranker with --rerank.",
        "train.mrg --dev dev.mrg --model parser.tw --max-length 15",
        TREES,
        "kernel",
    ),
    "leftcorner": Kind(
        "treewright.parsing.leftcorner.parser:LeftCornerParser",
        "Train a neural left-corner parser (needs the extra neural).",
        "train.mrg --dev dev.mrg --model parser.tw --rerank efficient-top",
        TREES,
        "kernel",
    ),
    "span": Kind(
        "treewright.parsing.span.parser:SpanParser",
        "Train a neural span-based constituency parser (needs the extra neural).",
        "train.mrg --dev dev.mrg --model parser.tw --tags predicted",
        TREES,
        "kernel",
    ),
    "tagger": Kind(
        "treewright.tagging.tagger:Tagger",
        "Train a tagger for parts of speech, morphological features and lemmas.",
        "train.conllu --dev dev.conllu --model tagger.tw",
    ),
    "roles": Kind(
        "treewright.srl.labeler:RoleLabeler",
        "Train a semantic role labeler.",
        "train.mrg --props train.props --model roles.tw --kernel linear+sst",
    ),
}
"""The kinds of models by command name."""

SHARED = ("random_state", "n_jobs")
"""Parameters shared by a parser and its reranker."""
SPELLINGS = {
    "k": "candidates",
    "folds": "rerank-folds",
    "epochs": "rerank-epochs",
    "predict_by": "rerank-predict-by",
}
"""Option names for reranker parameters whose names a parser may also have."""
TOKENIZER_SPELLINGS = {"epochs": "tokenizer-epochs"}
NEURAL = "neural"
"""The value of --scorer that chooses a network and enables its options."""
NETWORK_SPELLINGS = {
    "epochs": "network-epochs",
    "patience": "network-patience",
    "loss": "network-loss",
    "min_count": "network-min-count",
}


class TrainCommands(LazyCommands):
    """The commands that train models, each imported on first use."""

    entries = KINDS

    def load(self, name: str) -> Any:  # noqa: ANN401
        """Return a command."""
        return make_command(name, train_command(name), BaseCommand)


app = typer.Typer(cls=TrainCommands, add_completion=False, rich_markup_mode="markdown")


@app.callback()
def _train() -> None:
    """Train a model."""


def option_groups(name: str) -> dict[str, Options]:
    """Return the options of a command that trains models of a kind."""
    kind = KINDS[name]
    whole = locate(kind.model)
    model = locate(kind.parser) if kind.parser else whole
    left_out = ("templates", "tags") if kind.parser else ("templates",)
    groups = {
        "data": Options(whole.read_training, leave_out=("train",)),
        "chosen": Options(model, _last_word(model.__name__), leave_out=left_out),
    }
    if kind.tokenizer:
        tokenizer = locate(kind.tokenizer)
        groups["tokenizer"] = Options(tokenizer, "Tokenizer", TOKENIZER_SPELLINGS, ("random_state",))
    if kind.network:
        groups["network"] = Options(locate(kind.network), "Network", NETWORK_SPELLINGS, SHARED)
    learners = [model]
    if kind.reranker:
        reranker = locate(kind.reranker)
        learners.append(reranker)
        spellings = dict(SPELLINGS)
        defaults: dict[str, Any] = {}
        if kind.rerank_by:
            spellings[kind.rerank_by], defaults[kind.rerank_by] = "rerank", None
        else:
            groups["reranking"] = Options(_reranking, "Reranker")
        groups["reranker"] = Options(reranker, "Reranker", spellings, SHARED, defaults)
    has_client = any("client" in inspect.signature(each.fit).parameters for each in learners)
    groups["how"] = Options(running, leave_out=() if has_client else ("scheduler",))
    return groups


def train_command(name: str) -> Callable[..., None]:
    """Return the command that trains models of a kind."""
    kind = KINDS[name]
    groups = option_groups(name)
    text = parameter_texts(inspect.getdoc(groups["data"].source) or "")["train"]

    def train(
        train: Annotated[str, typer.Argument(metavar="TRAIN", help=text)],
        model: Annotated[Path, typer.Option(metavar="FILE", help="File for the model.")],
        compact: Annotated[
            bool,
            typer.Option(
                "--compact", help="Write a smaller file: round weights, and drop those closest to zero."
            ),
        ] = False,
        **groups: Chosen,
    ) -> None:
        tokenizer = groups.pop("tokenizer", None)
        if tokenizer is not None:
            groups["chosen"].values["tags"] = "predicted"
        network = groups.pop("network", None)
        if network is not None:
            _choose_network(groups["chosen"], network)
        learner = _make_learner(kind, **groups)
        if tokenizer is not None:
            seed = groups["chosen"].values["random_state"]
            splitter = tokenizer.options.source(**tokenizer.values, random_state=seed)
            learner = locate(kind.model)(tokenizer=splitter, parser=learner)
        _fit(learner, locate(kind.model), train, model, list(groups.values()), compact=compact)

    train.__doc__ = f"{kind.help}\n\nExample: `treewright train {name} {kind.example}`"
    return takes(**groups)(train)


def _choose_network(chosen: Chosen, network: Chosen) -> None:
    """Set up the network if `--scorer` chooses one; raise `InputError` if its options have no effect."""
    if chosen.values["scorer"] != NEURAL:
        network.refuse(f"without --scorer {NEURAL}; add --scorer {NEURAL}")
        return
    network.refuse_without_effect()
    shared = {name: chosen.values[name] for name in SHARED}
    chosen.values["scorer"] = network.options.source(**network.values, **shared)


def _make_learner(
    kind: Kind,
    *,
    chosen: Chosen,
    reranker: Chosen | None = None,
    reranking: Chosen | None = None,
    data: Chosen,
    how: Chosen,
) -> Any:  # noqa: ANN401
    """Return the unfitted model with its options; raise `InputError` for an option without effect."""
    if reranker is None:
        chosen.refuse_without_effect()
        return _make_model(chosen)
    is_wanted = reranking.values["rerank"] if reranking else reranker.values[str(kind.rerank_by)] is not None
    if not is_wanted:
        for options in (reranking, reranker):
            if options is not None:
                options.refuse("without --rerank; add --rerank")
        chosen.refuse_without_effect()
        return _make_model(chosen)
    if reranking and reranking.values["paper"]:
        _choose_paper(reranker)
    if reranker.values["parser"] is not None:
        chosen.refuse("with --parser; remove one of them", but=SHARED)
    own = reranker.options.spell("predict_by") if "predict_by" in reranker.values else None
    if own is not None:
        chosen.refuse(f"under a reranker; use {own}", only=("predict_by",))
    chosen.refuse_without_effect()
    reranker.refuse_without_effect()
    values = reranker.values | {name: chosen.values[name] for name in SHARED}
    hints = constructor_hints(reranker.options.source)
    for name, hint in hints.items():
        if model_types(hint) and values.get(name) is not None:
            wanted: tuple[Any, ...] = model_types(hint)
            if name == "parser":
                wanted = (chosen.options.source,)
            given = values[name]
            values[name] = (
                tuple(_load_parser(each, wanted) for each in given)
                if isinstance(given, tuple)
                else _load_parser(given, wanted)
            )
    if values["parser"] is None:
        values["parser"] = _make_model(chosen)
        check_params(values["parser"])
    return reranker.options.source(**values)


def _choose_paper(reranker: Chosen) -> None:
    """Set the options of a reranker as in the paper, except a memory limit given by the user."""
    from treewright.rerank.reranker import PAPER_SETTINGS

    source: Any = reranker.options.source
    free = source.unsaved
    reranker.refuse(
        "with --paper; remove one of them", only=[each for each in PAPER_SETTINGS if each not in free]
    )
    reranker.values |= {
        name: value for name, value in PAPER_SETTINGS.items() if name not in reranker.specified
    }


def _make_model(chosen: Chosen) -> Any:  # noqa: ANN401
    """Return a model with its options; submodels are given as ``module:Class`` or as files."""
    values = dict(chosen.values)
    for name, hint in constructor_hints(chosen.options.source).items():
        kinds, given = model_types(hint), values.get(name)
        if kinds and isinstance(given, str):
            module, is_class, attribute = given.partition(":")
            kind: Any = getattr(import_here(module), attribute, None) if is_class else None
            if is_class and not (kind in REGISTRY.values() and issubclass(kind, kinds)):
                expected = " or ".join(each.__name__ for each in kinds)
                raise InputError(
                    f"{chosen.options.spell(name)} is {given}; expected a registered subclass of {expected}"
                )
            values[name] = kind() if kind else _load_parser(given, kinds)
    return chosen.options.source(**values)


def _fit(
    learner: Any,  # noqa: ANN401
    kind: Any,  # noqa: ANN401
    train: str,
    model: Path,
    groups: Sequence[Chosen],
    *,
    compact: bool,
) -> None:
    """Read the training files, train a model and save it."""
    from treewright._cache import cache_folder
    from treewright.checkpoint import Checkpoint

    values = {name: value for group in groups for name, value in group.values.items()}
    checkpoint = begin_checkpoint(model, resume=values["resume"])
    inputs = {option: path for group in groups for option, path in group.files().items()}
    check_results({"--model": model}, {"TRAIN": train, **inputs})
    check_writable(model)
    check_params(learner)
    data = next(group for group in groups if group.options.source == kind.read_training)
    training = kind.read_training(train, **data.values)
    takes = inspect.signature(learner.fit).parameters
    extras: dict[str, Any] = {"cache": cache_folder("lists")} if "cache" in takes else {}
    scheduler = values.get("scheduler")
    with open_cluster(scheduler) if scheduler is not None else nullcontext() as client:
        if "client" in takes:
            extras["client"] = client
        learner.fit(*training, checkpoint=checkpoint, **extras).save(model, compact=compact)
    Checkpoint.remove(checkpoint)
    say(f"written: {model}", event="result")


def _load_parser(path: str, kinds: tuple[type, ...]) -> Any:  # noqa: ANN401
    from treewright.model import load

    parser = load(path)
    if not isinstance(parser, kinds):
        expected = " or a ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{path} is a {type(parser).__name__}; expected a {expected}")
    return parser


def _reranking(*, rerank: bool = False, paper: bool = False) -> None:
    """Declare options.

    Parameters
    ----------
    rerank : bool
        Also train a reranker of the parser's candidates.
    paper : bool
        Use the settings of Qian & Liu (2015) for the reranker.
    """


def locate(name: str) -> Any:  # noqa: ANN401
    """Import an object given as ``"module:name"``."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _last_word(name: str) -> str:
    """Return the last word of a class name, such as Parser in DependencyParser."""
    return name[max(at for at, letter in enumerate(name) if letter.isupper()) :]
