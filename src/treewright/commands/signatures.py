"""Options of the command line, made from the signatures and docstrings of what they are handed to.

The constructor of an estimator, or a dataclass of settings, says once what a parameter is called, its type
and bounds, its default and its meaning. Commands take these as options.
"""

import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from treewright._typing import Range, option_name, show_value
from treewright.errors import InputError


@dataclass(frozen=True)
class Options:
    """The parameters of an estimator, or of settings, as options of a command.

    Parameters
    ----------
    source : callable
        The class, whose constructor and docstring are read.
    panel : str
        The heading of the options in the help.
    prefix : str
        Put before the names of the options, as in ``--rerank-folds``.
    leave_out : tuple of str
        Parameters that are no options.
    """

    source: Callable[..., Any]
    panel: str
    prefix: str = ""
    leave_out: tuple[str, ...] = ()


@dataclass
class Chosen:
    """The values of some options, by parameter, and which of them the user has given."""

    values: dict[str, Any] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    """Parameters that stand on the command line, with the spelling of their options."""


def takes(**groups: Options) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of each group, which it receives as one `Chosen` under the group's name."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [
            p
            for name, p in inspect.signature(command, eval_str=True).parameters.items()
            if name not in groups
        ]
        made: dict[str, tuple[str, str, str]] = {}
        readers: dict[str, Callable[[Any], Any]] = {}
        parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        parameters += [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own if each.name != "context"
        ]
        for group, options in groups.items():
            for name, parameter, spelling, read in _parameters(options):
                made[parameter.name] = (group, name, spelling)
                readers[parameter.name] = read
                parameters.append(parameter)

        @wraps(command)
        def run(**values: Any) -> Any:  # noqa: ANN401
            context: typer.Context = values.pop("context")
            chosen = {group: Chosen() for group in groups}
            for key, (group, name, spelling) in made.items():
                chosen[group].values[name] = readers[key](values.pop(key))
                source = context.get_parameter_source(key)
                if source is not None and source.name != "DEFAULT":
                    chosen[group].given[name] = spelling
            if any(each.name == "context" for each in own):
                values["context"] = context
            return command(**values, **chosen)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        del run.__wrapped__
        return run

    return decorate


def _parameters(options: Options) -> list[tuple[str, inspect.Parameter, str, Callable[[Any], Any]]]:
    """Return the parameters of a group: names in the source, as Typer takes them, options, and readers."""
    source = options.source
    constructor = source.__init__ if inspect.isclass(source) else source
    hints = get_type_hints(constructor, include_extras=True)
    texts: dict[str, str] = {}
    for each in reversed(inspect.getmro(source) if inspect.isclass(source) else [source]):
        texts |= parameter_texts(inspect.cleandoc(each.__doc__ or ""))
    found = []
    for name, parameter in inspect.signature(source).parameters.items():
        if name in options.leave_out or name not in hints:
            continue
        spelling = option_name(name, options.prefix)
        hint, default = hints[name], parameter.default
        read: Callable[[Any], Any] = _as_it_is
        metavar = None
        if (member := _member_of_tuple(hint)) is not None:
            read, metavar = partial(read_tuple, spelling, member), "A,B,..."
            hint, default = (str | None, None) if default is None else (str, show_value(default))
        declared = declare(
            hint, spelling, help_text=texts.get(name, ""), panel=options.panel, metavar=metavar
        )
        key = spelling.removeprefix("--").replace("-", "_")
        made = inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=declared)
        found.append((name, made, spelling, read))
    return found


def _as_it_is(value: Any) -> Any:  # noqa: ANN401
    return value


def _member_of_tuple(hint: Any) -> Any:  # noqa: ANN401
    """Return what a tuple of any length has in it; None for other types."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return next((get_args(each)[0] for each in members if get_origin(each) is tuple), None)


def read_tuple(spelling: str, member: Any, text: str | None) -> tuple[Any, ...] | None:  # noqa: ANN401
    """Read values with commas between them; where one may be None, that is written as all.

    Examples
    --------
    >>> read_tuple("--max-length", int | None, "15,all"), read_tuple("--systems", str, None)
    ((15, None), None)
    """
    if not text:
        return None
    members = get_args(member) if get_origin(member) in (Union, types.UnionType) else (member,)
    plain = get_args(members[0])[0] if get_origin(members[0]) is Annotated else members[0]
    kind = plain if plain in (int, float) else str
    try:
        return tuple(
            None if part == "all" and types.NoneType in members else kind(part) for part in text.split(",")
        )
    except ValueError:
        wanted = "integers" if kind is int else "numbers"
        raise InputError(f"{spelling} is {text!r}; expected {wanted} with commas between them") from None


def declare(hint: Any, spelling: str, *, help_text: str, panel: str, metavar: str | None = None) -> Any:  # noqa: ANN401
    """Return the annotation by which Typer makes an option of a type."""
    is_optional = False
    if get_origin(hint) in (Union, types.UnionType):
        members = [each for each in get_args(hint) if each is not types.NoneType]
        is_optional, hint = len(members) < len(get_args(hint)), members[0]
    plain, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    bounds = next((each for each in extras if isinstance(each, Range)), Range())
    settings: dict[str, Any] = {"help": help_text, "rich_help_panel": panel, "metavar": metavar}
    if plain is bool:
        return Annotated[bool, typer.Option(f"{spelling}/--no-{spelling.removeprefix('--')}", **settings)]
    if plain in (int, float):
        settings |= {"min": bounds.low, "max": bounds.high, "metavar": "N" if plain is int else "X"}
    return Annotated[plain | None if is_optional else plain, typer.Option(spelling, **settings)]


def parameter_texts(docstring: str) -> dict[str, str]:
    """Return the first sentence about each parameter in a numpydoc docstring."""
    _, _, section = docstring.partition("Parameters\n----------\n")
    section = re.split(r"\n\S[^\n]*\n-{3,}\n", section)[0]
    texts: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, _, body = entry.partition("\n")
        names = head.partition(" :")[0]
        text = " ".join(body.split()).replace("`", "")
        sentence = re.split(r"(?<=[.;])\s", text)[0].rstrip(";")
        for name in names.split(", "):
            texts[name] = sentence
    return texts


def refuse_without_effect(chosen: Chosen, names: Mapping[str, str]) -> None:
    """Refuse options that would change nothing.

    Parameters
    ----------
    chosen : Chosen
    names : mapping of str to str
        Parameters without effect, and what is expected for them to have one, such as ``"--rerank"``.
    """
    for name, spelling in chosen.given.items():
        if name in names:
            raise InputError(f"{spelling} has no effect here; expected {names[name]}")
