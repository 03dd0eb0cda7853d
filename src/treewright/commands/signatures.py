"""Command-line options, derived from signatures and docstrings.

The constructor of an estimator, or a function, declares each parameter once: its name, type, bounds, default
and description. Commands turn the parameters into options. If an option has a fixed list of values, shells
complete them.
"""

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, wraps
from keyword import iskeyword
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import typer
from typer.models import OptionInfo

from treewright._naming import option_name, show_value, spelled_by
from treewright._typing import NonNegativeInt, RandomState, Shown
from treewright._validate import constructor_hints, describe_type, is_allowed, members_of, without_effect
from treewright.errors import InputError, quote

KEYWORD = inspect.Parameter.KEYWORD_ONLY

RUNNING = "Running"
"""Help panel of options that affect how a command runs, not what it computes."""
RUNNING_PARAMETERS = frozenset(
    {
        "random_state",
        "n_jobs",
        "device",
        "device_memory",
        "memory_limit",
        "filter_memory",
        "scheduler",
        "resume",
    }
)
LONGEST_METAVAR = 14
"""Maximum length of a list of choices next to the option; longer lists are part of the help text."""
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
UNITS = " KMGT"
NO_VALUE = "none"
"""Spelling of None on the command line, for options whose default is another value."""

Offer: TypeAlias = Callable[[str], list[str]]


@dataclass(frozen=True)
class Options:
    """The parameters of an estimator or a function as options of a command.

    Parameters
    ----------
    source : callable
        A class, whose constructor and docstring are read, or a function.
    panel : str, optional
        Heading of the options in the help.
    spellings : mapping of str to str
        Option names that differ from the parameter names. They may also name parameters in `leave_out` whose
        options the command declares itself.
    leave_out : sequence of str
        Parameters that are not options.
    defaults : mapping of str to object
        Defaults that differ from those of the parameters.
    only : sequence of str, optional
        Parameters that are options (by default, all).
    """

    source: Callable[..., Any]
    panel: str | None = None
    spellings: Mapping[str, str] = field(default_factory=dict)
    leave_out: Sequence[str] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    only: Sequence[str] | None = None

    @property
    def names(self) -> list[str]:
        """The parameters that become options."""
        hints = constructor_hints(self.source)
        return [
            name
            for name in inspect.signature(self.source).parameters
            if name in hints and name not in self.leave_out and (self.only is None or name in self.only)
        ]

    def spell(self, name: str) -> str:
        """Return the option of a parameter; if the default is True, the option negates it."""
        option = option_name(self.spellings.get(name, name))
        default = self.defaults.get(name, inspect.signature(self.source).parameters[name].default)
        is_negated = default is True and constructor_hints(self.source)[name] is bool
        return f"--no-{option.removeprefix('--')}" if is_negated else option

    def declare(self) -> list["_Option"]:
        """Return the parameters as options."""
        hints = constructor_hints(self.source)
        texts: dict[str, str] = {}
        for each in reversed(inspect.getmro(self.source) if inspect.isclass(self.source) else [self.source]):
            texts |= parameter_texts(inspect.cleandoc(each.__doc__ or ""))
        declared = inspect.signature(self.source).parameters
        return [
            _Option(
                name,
                self.spell(name),
                NonNegativeInt if hints[name] == RandomState else hints[name],
                self.defaults.get(name, declared[name].default),
                texts.get(name, ""),
                RUNNING if name in RUNNING_PARAMETERS else self.panel,
            )
            for name in self.names
        ]


@dataclass
class Chosen:
    """The values of some options by parameter, and the parameters that the user gave."""

    options: Options
    values: dict[str, Any] = field(default_factory=dict)
    specified: list[str] = field(default_factory=list)
    """Parameters that the user gave on the command line."""

    def files(self) -> dict[str, str]:
        """Return files and models by option; further files of the same option are numbered from 2."""
        found: dict[str, str] = {}
        for name, hint in constructor_hints(self.options.source).items():
            if shown_as(hint) is Shown.FILE or model_types(hint):
                value, option = self.values.get(name), self.options.spell(name)
                paths = value if isinstance(value, tuple) else (value,)
                found |= {
                    f"{option} ({number})" if number > 1 else option: path
                    for number, path in enumerate(paths, start=1)
                    if isinstance(path, str)
                }
        return found

    def refuse_without_effect(self, **others: object) -> None:
        """Raise `InputError` if an option has no effect with the other options or with `others`."""
        with spelled_by(self.options.spell):
            for found in without_effect(self.options.source, {**self.values, **others}, self.specified):
                raise InputError(str(found))

    def refuse(self, reason: str, *, only: Sequence[str] | None = None, but: Sequence[str] = ()) -> None:
        """Raise `InputError` if the user gave an option that is in `only` (default: any) and not in `but`."""
        for name in self.specified:
            if name not in but and (only is None or name in only):
                raise InputError(f"{self.options.spell(name)} has no effect {reason}")


def takes(**groups: Options) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add groups of options to a command, which receives each group as a `Chosen` keyword argument."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True).parameters
        own = [
            parameter
            for name, parameter in signature.items()
            if name not in groups and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        own_options = dict(filter(None, map(_find_option, own)))
        made = {group: options.declare() for group, options in groups.items()}
        options = sorted((each for group in made.values() for each in group), key=lambda each: each.is_last)
        parameters = [inspect.Parameter("context", KEYWORD, annotation=typer.Context)]
        parameters += [each.replace(kind=KEYWORD) for each in own]
        parameters += [each.make_parameter() for each in options]

        def spell(name: str) -> str:
            having = (each for each in groups.values() if name in each.names or name in each.spellings)
            found = next(having, None)
            return found.spell(name) if found else own_options.get(name, name)

        @wraps(command)
        def run(context: typer.Context, **values: Any) -> Any:  # noqa: ANN401
            chosen = {group: Chosen(options) for group, options in groups.items()}
            for group, options in made.items():
                for option in options:
                    raw, value = values.pop(option.key), option.default
                    source = context.get_parameter_source(option.key)
                    if source is not None and source.name != "DEFAULT":
                        chosen[group].specified.append(option.name)
                        value = option.read(raw)
                    chosen[group].values[option.name] = value
            with spelled_by(spell):
                return command(**values, **chosen)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        del run.__wrapped__
        return run

    return decorate


def _find_option(parameter: inspect.Parameter) -> tuple[str, str] | None:
    """Return a parameter that a command declares itself, and its option; None if it is an argument."""
    for each in get_args(parameter.annotation)[1:]:
        if isinstance(each, OptionInfo):
            return parameter.name, each.param_decls[0] if each.param_decls else option_name(parameter.name)
    return None


@dataclass(frozen=True)
class _Option:
    """A parameter as an option.

    For Typer, it is a flag or a string; `read` converts the string. Therefore error messages come from the
    library and do not depend on the version of Typer.
    """

    name: str
    spelling: str
    hint: Any
    default: Any
    text: str
    panel: str | None

    @cached_property
    def key(self) -> str:
        """Name of the option in Typer."""
        key = self.spelling.removeprefix("--").replace("-", "_")
        return f"{key}_" if iskeyword(key) else key

    @property
    def is_last(self) -> bool:
        """Whether the option belongs to the last panel of the help."""
        return self.panel == RUNNING

    @cached_property
    def choices(self) -> dict[str, Any]:
        """The allowed strings, if there is a fixed list, with the value of each."""
        found: dict[str, Any] = {}
        for member in members_of(self.hint):
            values = get_args(member) if get_origin(member) is Literal else ()
            found |= {
                str(each).lower(): each for each in (values or ((True, False) if member is bool else ()))
            }
        return found | (
            {NO_VALUE: None} if self.default is not None and NoneType in members_of(self.hint) else {}
        )

    def make_parameter(self) -> inspect.Parameter:
        """Return the parameter from which Typer makes the option."""
        settings: dict[str, Any] = {"help": self.text, "rich_help_panel": self.panel}
        if self.hint is bool:
            if self.default:
                settings["help"] = f"Do not {self.text[:1].lower()}{self.text[1:]}"
            settings["metavar"] = ""
            annotation: Any = Annotated[bool, typer.Option(self.spelling, **settings)]
            return inspect.Parameter(self.key, KEYWORD, default=False, annotation=annotation)
        metavar = "|".join(dict.fromkeys([*map(_metavar, self._others), *self.choices]))
        if self.choices and str in self._others:
            metavar = metavar.removeprefix("TEXT|")
        if len(metavar) > LONGEST_METAVAR and not self._others:
            metavar, settings["help"] = "NAME", f"{self.text} One of: {', '.join(self.choices)}."
        if self.choices:
            settings["autocompletion"] = offer([*self.choices])
        annotation = Annotated[str | None, typer.Option(self.spelling, metavar=metavar, **settings)]
        return inspect.Parameter(self.key, KEYWORD, default=self._show_default(), annotation=annotation)

    @cached_property
    def _others(self) -> list[Any]:
        """The types of values that are not in the list of choices."""
        models = model_types(self.hint)
        plain = (int, float, str, Path)
        return [
            each
            for each in members_of(self.hint)
            if _plain(each) in plain or each in models or get_origin(each) is tuple
        ]

    def _show_default(self) -> Any:  # noqa: ANN401
        if self.default is None or self.default is inspect.Parameter.empty:
            return self.default
        if self.default == ():
            return None
        if shown_as(self.hint) is Shown.MEMORY:
            return format_size(self.default)
        if isinstance(self.default, tuple):
            return show_value(self.default)
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    def read(self, raw: Any) -> Any:  # noqa: ANN401
        """Convert the text that the user gave."""
        if self.hint is bool:
            return raw != bool(self.default)
        if raw is None and self.default == ():
            return ()
        if raw is None or raw in self.choices:
            return self.choices.get(raw)
        for kind in self._others:
            if shown_as(kind) is Shown.MEMORY:
                return parse_size(self.spelling, raw)
            if get_origin(kind) is tuple:
                return read_tuple(self.spelling, get_args(kind)[0], raw)
            plain = _plain(kind)
            if plain not in (int, float):
                return Path(raw) if plain is Path else raw
            with suppress(ValueError):
                value = plain(raw)
                if is_allowed(value, kind):
                    return value
        expected = describe_type(self.hint)
        if self.choices:
            others = [describe_type(each) for each in self._others]
            choices = ", ".join(self.choices)
            expected = " or ".join([*others, choices if len(self.choices) == 1 else f"one of {choices}"])
        raise InputError(f"{self.spelling} is {quote(raw)}; expected {expected}")


def _plain(hint: Any) -> Any:  # noqa: ANN401
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def model_types(hint: Any) -> tuple[type, ...]:  # noqa: ANN401
    """Return the model classes in the type of a parameter; users give such models as files."""
    members = (
        inner
        for each in members_of(hint)
        for inner in (members_of(get_args(each)[0]) if get_origin(each) is tuple else (each,))
    )
    return tuple(each for each in members if hasattr(each, "from_state"))


def shown_as(hint: Any) -> Shown | None:  # noqa: ANN401
    """Return the `Shown` annotation of a type, such as a file or a memory size; None if it has none."""
    found = [each for member in members_of(hint) for each in get_args(member) if isinstance(each, Shown)]
    return found[0] if found else None


def _metavar(hint: Any) -> str:  # noqa: ANN401
    shown = shown_as(hint)
    if get_origin(hint) is tuple:
        return "MODEL,..." if model_types(hint) else "A,B,..."
    return (
        shown.value if shown else {int: "N", float: "X", str: "TEXT", Path: "FILE"}.get(_plain(hint), "MODEL")
    )


def read_tuple(spelling: str, member: Any, text: str) -> tuple[Any, ...]:  # noqa: ANN401
    """Read comma-separated values; None is written as "all".

    Examples
    --------
    >>> read_tuple("--max-length", int | None, "15,all")
    (15, None)
    """
    kinds = members_of(member)
    kind = next((plain for plain in map(_plain, kinds) if plain in (int, float)), str)
    try:
        return tuple(
            None if part == "all" and types.NoneType in kinds else kind(part) for part in text.split(",")
        )
    except ValueError:
        wanted = "integers" if kind is int else "numbers"
        wanted += " or all" if types.NoneType in kinds else ""
        raise InputError(f"{spelling} is {text!r}; expected {wanted}, separated by commas") from None


def parse_size(option: str, text: str) -> int:
    """Return the number of bytes of a size such as 4G or 1.5 MiB."""
    found = SIZE.fullmatch(text.strip())
    if not found or float(found[1]) == 0:
        raise InputError(f"{option} is {text!r}; expected a size such as 512M or 4G")
    return max(1, int(float(found[1]) * (1 << 10 * UNITS.index(found[2].upper() or " "))))


def format_size(n_bytes: int) -> str:
    """Format a number of bytes so that `parse_size` can read it."""
    power = next(power for power in (4, 3, 2, 1, 0) if n_bytes % (1 << 10 * power) == 0)
    return f"{n_bytes >> 10 * power}{UNITS[power]}".strip()


def join_signatures(kinds: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a function with the parameters of several functions.

    If several functions declare the same parameter, the first type and description are used. If the defaults
    differ, the parameter has no default, and its description lists them.
    """

    def joined() -> None:
        """Provide a signature for `Options`."""

    hints: dict[str, Any] = {}
    texts: dict[str, str] = {}
    defaults: dict[str, dict[str, Any]] = {}
    for kind, source in kinds.items():
        found = parameter_texts(inspect.getdoc(source) or "")
        for name, hint in constructor_hints(source).items():
            hints.setdefault(name, hint)
            texts.setdefault(name, found.get(name, ""))
            defaults.setdefault(name, {})[kind] = inspect.signature(source).parameters[name].default
    parameters = []
    for name, by_kind in defaults.items():
        default, *others = dict.fromkeys(by_kind.values())
        if others:
            shown = ", ".join(f"{kind}: {value}" for kind, value in by_kind.items())
            texts[name] = f"{texts[name].rstrip('.')} (default with {shown})."
            default, hints[name] = None, hints[name] | None
        parameters.append(inspect.Parameter(name, KEYWORD, default=default, annotation=hints[name]))
    joined.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    joined.__annotations__ = hints
    body = "\n".join(f"{name} :\n    {text}" for name, text in texts.items())
    joined.__doc__ = f"Parameters\n----------\n{body}"
    return joined


def offer(values: Sequence[str]) -> Offer:
    """Return a shell completion function for some values."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def parameter_texts(docstring: str) -> dict[str, str]:
    """Return the first sentence of each parameter's description in a numpydoc docstring."""
    _, _, section = docstring.partition("Parameters\n----------\n")
    section = re.split(r"\n\S[^\n]*\n-{3,}\n", section)[0]
    texts: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, _, body = entry.partition("\n")
        names = head.partition(" :")[0]
        text = " ".join(body.split()).replace("`", "")
        sentence = re.split(r"(?<=\.)\s", text)[0]
        for name in names.split(", "):
            texts[name] = sentence
    return texts
