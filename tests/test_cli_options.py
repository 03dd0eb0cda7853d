"""The options of commands are the parameters of what they make."""

import inspect
import itertools
import re
import subprocess
import sys

import pytest
from commands import run
from typer.main import get_command
from typer.testing import CliRunner

import treewright as tw
from treewright import cli
from treewright._validate import GIVEN, check_params, constructor_hints, without_effect
from treewright.commands import train
from treewright.commands.kernels import TREE_KERNELS
from treewright.commands.signatures import Options, format_size, parameter_texts, parse_size, takes
from treewright.errors import InputError
from treewright.mining.miner import ConjunctionMiner
from treewright.parsing.contract import PartScorer
from treewright.report.experiment import list_experiments
from treewright.srl.roles import RoleClassifier
from treewright.web.work import ServiceLimits

NAMES = {"n_jobs": "--jobs", "random_state": "--seed", "C": "--cost"}
RERANKER_NAMES = {
    "k": "--candidates",
    "folds": "--rerank-folds",
    "epochs": "--rerank-epochs",
    "predict_by": "--rerank-predict-by",
}
PYTHON_ONLY = {"templates", "similarity"}
COMMANDS = [
    *([name] for name in cli.COMMANDS if name != "train"),
    *(["train", name] for name in train.KINDS),
    *(["reproduce", name] for name in list_experiments()),
]
CLASSES = {
    train.locate(name) for kind in train.KINDS.values() for name in (kind.model, kind.reranker) if name
} | {ConjunctionMiner, RoleClassifier}


def options_of(*words):
    """Return the options of a command, and their defaults as users see them."""
    command = get_command(cli.app)
    for word in words:
        with command.make_context(word, [], resilient_parsing=True) as context:
            _, command, _ = command.resolve_command(context, [word])
    return {
        option: parameter.default
        for parameter in command.params
        if parameter.param_type_name == "option"
        for option in parameter.opts
    }


def spell(name, default, names):
    option = names.get(name, f"--{name.replace('_', '-')}")
    return f"--no-{option.removeprefix('--')}" if default is True else option


def show(default, hint):
    if isinstance(default, bool):
        return False
    if default is None or default == ():
        return None
    return format_size(default) if "memory" in str(hint).lower() else str(default)


def parameters_of(kind):
    hints = constructor_hints(kind)
    signature = inspect.signature(kind).parameters
    return {name: (signature[name].default, hints[name]) for name in hints if name not in PYTHON_ONLY}


@pytest.mark.parametrize("name", train.KINDS)
def test_every_parameter_of_a_model_is_an_option_with_its_default(name):
    kind, found = train.KINDS[name], options_of("train", name)
    for parameter, (default, hint) in parameters_of(train.locate(kind.parser or kind.model)).items():
        if not (kind.parser and parameter == "tags"):
            assert found[spell(parameter, default, NAMES)] == show(default, hint)


def test_every_parameter_of_a_tokenizer_is_an_option_of_a_pipeline_with_its_default():
    found = options_of("train", "pipeline")
    for parameter, (default, hint) in parameters_of(tw.Tokenizer).items():
        names = NAMES | {name: f"--{each}" for name, each in train.TOKENIZER_SPELLINGS.items()}
        assert found[spell(parameter, default, names)] == show(default, hint)


@pytest.mark.parametrize("name", [name for name, kind in train.KINDS.items() if kind.reranker])
def test_every_parameter_of_a_reranker_is_an_option_with_its_default(name):
    kind, found = train.KINDS[name], options_of("train", name)
    for parameter, (default, hint) in parameters_of(train.locate(kind.reranker)).items():
        if parameter == kind.rerank_by:
            assert found["--rerank"] is None
        else:
            assert found[spell(parameter, default, NAMES | RERANKER_NAMES)] == show(default, hint)


def test_every_parameter_of_a_miner_is_an_option_of_mine_with_its_default():
    found = options_of("mine")
    for parameter, (default, hint) in parameters_of(ConjunctionMiner).items():
        assert found[spell(parameter, default, NAMES)] == show(default, hint)


@pytest.mark.parametrize("kernel", TREE_KERNELS.values())
def test_every_parameter_of_a_tree_kernel_is_an_option_of_kernel(kernel):
    found = options_of("kernel")
    for parameter, (default, hint) in parameters_of(kernel).items():
        if parameter == "decay":
            assert found["--decay"] is None
        else:
            assert found[spell(parameter, default, NAMES)] == show(default, hint)


@pytest.mark.parametrize("name", [name for name, kind in train.KINDS.items() if not kind.parser])
def test_without_options_a_model_has_its_defaults(name, tmp_path, monkeypatch):
    kind = train.locate(train.KINDS[name].model)
    fitted = []

    def fit(self, *training, **options):
        fitted.append(self)
        return self

    fit.__signature__ = inspect.signature(kind.fit)
    monkeypatch.setattr(kind, "fit", fit)
    monkeypatch.setattr(kind, "save", lambda self, path, *, compact: None)
    monkeypatch.setattr(kind, "read_training", staticmethod(kind.read_training))
    bank = tw.make_treebank(5, random_state=0)
    tw.write_brackets(bank.constituents, tmp_path / "bank.mrg")
    tw.write_conllu(bank.dependencies, tmp_path / "bank.conllu")
    tw.write_props(bank.propositions, tmp_path / "bank.props")
    source = tmp_path / ("bank.conllu" if name in ("dependency", "tagger") else "bank.mrg")
    needed = ["--props", tmp_path / "bank.props"] if name == "roles" else []
    run("train", name, source, "--model", tmp_path / "m", *needed)
    assert vars(fitted[0]) == vars(kind())


@pytest.mark.parametrize("words", [[], ["train"], *COMMANDS], ids=" ".join)
def test_help_is_whole_at_80_columns(words):
    shown = (
        CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "80"}, prog_name="treewright").output
    )
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    assert not re.search(r"<\w+>", shown)
    if words and words != ["train"]:
        assert f"Example: treewright {' '.join(words)} " in " ".join(shown.split())


@pytest.mark.parametrize("kind", sorted(CLASSES, key=lambda kind: kind.__name__))
def test_help_texts_are_sentences_that_are_short(kind):
    texts = parameter_texts(inspect.getdoc(kind))
    for name in parameters_of(kind):
        if name not in ("degree", "threshold"):
            assert texts[name].endswith(".")
        assert len(texts[name]) <= 85


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_commands_are_listed_as_their_help_begins(name):
    command = get_command(cli.app)
    with command.make_context("treewright", [], resilient_parsing=True) as context:
        _, loaded, _ = command.resolve_command(context, [name])
    assert inspect.cleandoc(loaded.help).splitlines()[0] == cli.COMMANDS[name].help


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["--help"], ["numba", "sklearn", "scipy"]),
        (["train", "--help"], ["numba", "sklearn", "scipy"]),
        (["convert", "--help"], ["numba", "sklearn", "scipy"]),
        (["parse", "--help"], ["numba", "sklearn", "scipy"]),
        (["train", "tagger", "--help"], ["sklearn", "torch"]),
        (["train", "dependency", "--help"], ["sklearn", "torch"]),
    ],
)
def test_a_command_imports_nothing_of_others(words, absent):
    code = (
        "import sys; from treewright.cli import run; sys.argv[1:] = {}; run(); "
        "print([name for name in {} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code.format(words, absent)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == "[]\n"


def declared():
    for kind in sorted(CLASSES, key=lambda kind: kind.__name__):
        for name, either in getattr(kind, "EFFECTIVE_IF", {}).items():
            if name in PYTHON_ONLY:
                continue
            yield pytest.param(kind, name, either, id=f"{kind.__name__}-{name}")


def other_value(hint, default):
    """Return a value of a parameter that is not the default."""
    if isinstance(default, bool):
        return not default
    texts = str(hint)
    if hint is bool:
        return not default
    if isinstance(default, str) and any(each in texts for each in ("bool", "int", "float")):
        return True if "bool" in texts else 1
    if "MEMORY" in texts:
        return 1 << 20
    if "Literal" in texts and "int" not in texts and "float" not in texts:
        return next(each for each in hint.__args__ if each != default)
    return (default or 0) * 0.5 if "float" in texts else (default or 1) + 1


@pytest.mark.parametrize(("kind", "name", "either"), [*declared()])
def test_a_parameter_without_effect_is_refused(kind, name, either):
    parameters = parameters_of(kind)
    others = {}
    for other in {other for way in (either if isinstance(either, list) else [either]) for other in way}:
        hints = getattr(parameters[other][1], "__args__", (False, True))
        choices = [
            each
            for hint in hints
            for each in getattr(hint, "__args__", (hint,))
            if isinstance(each, str | bool)
        ]
        choices += [None] if type(None) in hints else []
        others[other] = choices if len(choices) > 1 else [*choices, 3.0]
    default, hint = parameters[name]
    given = {name: 0.7 if name == "C" else other_value(hint, default)}
    refused = []
    for values in itertools.product(*others.values()):
        chosen = dict(zip(others, values, strict=True))
        is_effective = any(
            all(
                chosen[other] is not None if allowed is GIVEN else chosen[other] in allowed
                for other, allowed in way.items()
            )
            for way in (either if isinstance(either, list) else [either])
        )
        found = [each.name for each in without_effect(kind, chosen | given, [name])]
        assert found == ([] if is_effective else [name])
        refused += [] if is_effective else [chosen]
    with pytest.raises(InputError, match=" has no effect with "):
        check_params(kind(**refused[0] | given))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "dependency", "x", "--model", "m", "--threshold", "2"],
            "--threshold has no effect without --rerank; add --rerank",
        ),
        (
            [
                "train",
                "dependency",
                "x",
                "--model",
                "m",
                "--rerank",
                "--learner",
                "kernel",
                "--rerank-epochs",
                "2",
            ],
            "--rerank-epochs has no effect with --learner kernel and --ranker loglinear; "
            "expected --learner mined and --ranker perceptron",
        ),
        (
            ["train", "dependency", "x", "--model", "m", "--rerank", "--decay", "0.5"],
            "--decay has no effect with --learner mined; expected --learner kernel and --space subtree",
        ),
        (
            ["train", "dependency", "x", "--model", "m", "--rerank", "--paper", "--copies", "4"],
            "--copies has no effect with --paper; remove one of them",
        ),
        (
            ["train", "pipeline", "x", "--model", "m", "--rerank", "--paper", "--space", "template"],
            "--space has no effect with --paper; remove one of them",
        ),
        (
            ["train", "dependency", "x", "--model", "m", "--rerank", "--paper", "--chunks", "3"],
            "--chunks has no effect with --learner mined; expected --learner kernel",
        ),
        (
            ["train", "dependency", "x", "--model", "m", "--paper"],
            "--paper has no effect without --rerank; add --rerank",
        ),
        (
            [
                "train",
                "dependency",
                "x",
                "--model",
                "m",
                "--rerank",
                "--space",
                "template",
                "--threshold",
                "3",
            ],
            "--threshold has no effect with --space template; "
            "expected --learner mined and --space subtree or polynomial",
        ),
        (
            ["train", "constituent", "x", "--model", "m", "--folds", "5"],
            "--folds has no effect with --tags gold; expected --tags predicted",
        ),
        (
            ["train", "roles", "x", "--props", "y", "--model", "m", "--kernel", "mined", "--cost", "2"],
            "--cost has no effect with --kernel mined; expected --kernel linear or st or sst or pt "
            "or linear+st or linear+sst or linear+pt or fragments or linear+fragments",
        ),
        (
            ["mine", "x", "--out", "m", "--paper", "--max-iter", "3"],
            "--max-iter has no effect with --paper; remove one of them",
        ),
        (
            ["mine", "x", "--out", "m", "--no-sparse-output"],
            "--no-sparse-output has no effect without --model; add --model",
        ),
        (
            ["kernel", "x", "--out", "m", "--depth-decay", "0.4"],
            "--depth-decay has no effect with --kernel sst; expected --kernel pt or spt",
        ),
    ],
    ids=lambda each: None if isinstance(each, str) else " ".join(each[:2]),
)
def test_options_without_effect_are_one_line(fail, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fail(*arguments) == f"treewright: {message}"


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--order", "5", "'5'; expected one of 1, 2, 3"),
        ("--epochs", "0", "'0'; expected an integer of at least 1"),
        ("--epochs", "many", "'many'; expected an integer of at least 1"),
        ("--pruning-threshold", "2", "'2'; expected a number from 0 to 1"),
        ("--tags", "silver", "'silver'; expected one of gold, predicted"),
    ],
)
def test_values_that_cannot_be_used_are_named_with_what_is_expected(fail, option, value, expected):
    message = fail("train", "dependency", "x", "--model", "m", option, value)
    assert message == f"treewright: {option} is {expected}"


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("7", 7),
        ("1.5K", 1536),
        ("512m", 512 << 20),
        ("1.5 MiB", 3 << 19),
        ("4G", 4 << 30),
        ("2 TiB", 2 << 40),
    ],
)
def test_sizes_are_numbers_with_units(text, n_bytes):
    assert parse_size("--memory-limit", text) == n_bytes
    assert parse_size("--memory-limit", format_size(n_bytes)) == n_bytes


def test_a_number_that_may_be_missing_can_be_none():
    @takes(group=Options(tw.DependencyReranker, only=("copies", "significance_level")))
    def command(group):
        return group

    assert [each.name for each in inspect.signature(command).parameters.values()] == [
        "context", "copies", "significance_level"
    ]  # fmt: skip
    copies = Options(tw.DependencyReranker, only=("copies",)).declare()[0]
    assert [copies.read(text) for text in ("none", "3")] == [None, 3]


def test_a_flag_that_negates_is_named_as_it_is_given():
    assert Options(ConjunctionMiner).spell("sparse_output") == "--no-sparse-output"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mine x --out m --path maybe", "--path is 'maybe'; expected one of true, false, auto"),
        (
            "reproduce turian-table1 --data x --out y --max-length foo",
            "--max-length is 'foo'; expected integers or all, separated by commas",
        ),
        ("train dependency x --model m --rerank --candidates 1", "--candidates is '1'; expected an integer"),
        (
            "train dependency x --model m --decoder spanning --order 1 --folds 3",
            "--folds has no effect with --decoder spanning and --tags gold and no --jackknife; "
            "expected --decoder projective, or --tags predicted, or --jackknife",
        ),
        (
            "train dependency x --model m --scorer mine:Scorer --table-bits 20",
            "--table-bits has no effect with --scorer mine:Scorer and no --combine; expected no --scorer, or",
        ),
        (
            "reproduce turian-table1 --data x --out y --strategies up",
            "--strategies is 'up'; expected one of shift-reduce, original",
        ),
        (
            "reproduce qian-liu-table2 --data x --out y --degrees 0",
            "--degrees is 0; expected an integer of at least 1",
        ),
        (
            "parse m x --jobs 0",
            "--jobs is '0'; expected an integer of at least 1, or a negative one (-1: all pr",
        ),
        ("demo --seed -1", "--seed is '-1'; expected an integer of at least 0"),
        ("fetch en_ewt --release new", "--release is 'new'; expected a number as text, such as '2.14'"),
        (
            "convert x.conllu y.conllu --projectivize path --deprojectivize",
            "--projectivize and --deprojectivize are both given; expected one of them",
        ),
        ("parse m x --output", "Option '--output' requires an argument (see: treewright parse --help)"),
        ("train tagger x --model", "Option '--model' requires an argument (see: treewright train tagger --h"),
    ],
)
def test_messages_name_options(fail, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.conllu").write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    assert fail(*arguments.split()).startswith(f"treewright: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--patience 2", "--patience 2 is given without a dev set; expected a dev set for early stopping"),
        ("--decoder spanning", "--decoder spanning does not work with --order 3; expected --order 1"),
        (
            "--rerank --learner kernel --space template",
            "--learner kernel and --space template; expected --space subtree or polynomial",
        ),
    ],
)
def test_what_only_fit_can_check_names_options_too(fail, arguments, message, tmp_path):
    tw.write_conllu(tw.make_treebank(20, random_state=0).dependencies, tmp_path / "x.conllu")
    found = fail("train", "dependency", tmp_path / "x.conllu", "--model", tmp_path / "m", *arguments.split())
    assert found == f"treewright: {message}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evaluate t.mrg t.mrg --relations", "--relations has no effect on brackets; expected CoNLL-U"),
        ("kernel t.mrg --out g --centre tag", "--centre has no effect on brackets; expected CoNLL-U"),
        ("kernel t.conllu --out g --functions", "--functions has no effect on CoNLL-U; expected brackets"),
        ("kernel t.conllu --out g --traces", "--traces has no effect on CoNLL-U; expected brackets"),
        (
            "kernel t.mrg --other t.conllu --out g",
            "DATA is brackets and --other is CoNLL-U; expected the same kind of trees",
        ),
        (
            "convert t.conllu u.conllu --functions",
            "--functions has no effect on conllu; expected brackets in t.conllu",
        ),
        (
            "convert t.conllu u.conllu --unescape",
            "--unescape has no effect on conllu; expected brackets in t.conllu",
        ),
        (
            "convert t.conllu u.conllu --rules collins",
            "--rules has no effect on a conversion from conllu to dependencies; expected a conversion",
        ),
        (
            "evaluate t.mrg best",
            "best contains k-best trees with sentence, rank and score",
        ),
        (
            "mine t.svm --out g --degree 2 --pretrain-order 3",
            "--pretrain-order 3 and --degree 2; expected --pretrain-order of at most --degree",
        ),
    ],
)
def test_options_that_files_have_no_use_for_are_refused(fail, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bank = tw.make_treebank(3, random_state=0)
    tw.write_brackets(bank.constituents, "t.mrg")
    tw.write_conllu(bank.dependencies, "t.conllu")
    (tmp_path / "best").write_text(f"1\t1\t-0.5\t{bank.constituents[0]}\n")
    (tmp_path / "t.svm").write_text("1 1:1\n-1 2:1\n")
    assert fail(*arguments.split()).startswith(f"treewright: {message}")


@pytest.mark.parametrize("words", [*COMMANDS], ids=" ".join)
def test_usage_has_no_braces_and_folders_are_called_so(words):
    shown = CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "80"}, prog_name="treewright")
    usage = next(line for line in shown.output.splitlines() if "Usage:" in line)
    assert not set("{}") & set(usage)
    for found in re.findall(r"--[a-z-]+ +(\S+) +Folder", shown.output):
        assert found == "DIR"


@pytest.mark.parametrize("words", [["demo"], ["evaluate"], ["serve"], ["parse"]], ids=" ".join)
def test_seed_jobs_and_resume_stand_under_running(words):
    shown = CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "80"}, prog_name="treewright")
    before, _, running = shown.output.partition("─ Running ─")
    for option in ("--seed ", "--jobs ", "--resume "):
        assert option not in before
    assert any(option in running for option in ("--seed ", "--jobs "))


def test_every_limit_of_the_service_is_an_option():
    found = options_of("serve")
    names = {"n_jobs": "--jobs", "seconds": "--time-limit"}
    for parameter, (default, hint) in parameters_of(ServiceLimits).items():
        assert found[spell(parameter, default, names)] == show(default, hint)


def test_python_calls_parameters_by_their_names():
    trees = tw.make_treebank(20, random_state=0).dependencies
    with pytest.raises(InputError, match=r"^patience=2 is given without a dev set"):
        tw.DependencyParser(patience=2).fit(trees)
    with pytest.raises(InputError, match=r"^k is 1; expected an integer from 2 to "):
        tw.DependencyReranker(k=1).fit(trees)
    with pytest.raises(
        InputError, match=r"^table_bits has no effect with scorer=.*; expected scorer=None, or combine="
    ):
        tw.DependencyParser(scorer=PartScorer(), table_bits=20).fit(trees)
