"""Models: objects that are fitted, saved and loaded.

A model has parameters, which its constructor stores, and fitted attributes, whose names end in ``_``. A class
declares the saved attributes in `fields`: arrays with their types and bounds, plain values, and submodels.
`save` writes them to one file, and `load` rebuilds the model from that file. A file may come from an
untrusted source, even with a valid checksum, and compiled code does not check array bounds. Therefore every
field is checked when it is read, and `check_fitted_state` checks that the fields are consistent.

The file is in safetensors format. Its header holds the rest of the model's `State` as JSON: plain values and
the states of submodels. Loading a file never executes code from it. The header also has a checksum of the
whole model, which reveals corruption.
"""

import dataclasses
import errno
import hashlib
import importlib
import inspect
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Mapping
from copy import copy
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Protocol, Self, TypeVar, cast, get_args, get_origin

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from treewright._naming import spelled_by
from treewright._validate import check_param, check_param_names, check_params, constructor_hints, draw_seed
from treewright._version import __version__
from treewright.data.files import check_target, replacing
from treewright.errors import TROUBLESHOOTING, FormatError, InputError, MissingDependencyError, quote

Method = TypeVar("Method", bound=Callable[..., Any])

REGISTRY: dict[str, type["Model"]] = {}
"""Every model class that has been imported, by name."""
EXPECTED = "a treewright model; for a model class of your own, import its module first (--import MODULE)"
INTACT = "an intact model; copy or train it again"
HELP = f"{TROUBLESHOOTING}#models"
MODELS_FOLDER = Path(__file__).parent / "models"
"""Folder of the models included in the package."""
PARAMS = "params"
"""Key under which parameters are saved."""

FORMAT_VERSION, METADATA = 4, "treewright"
"""Version of the file format, and the entry of the safetensors header that holds the model as JSON."""
SEPARATOR = "/"
KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "floats"}
"""Names of NumPy's kind codes in messages."""
UNREADABLE = (
    SafetensorError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    OverflowError,
    zlib.error,
)
"""Exceptions raised while reading a file that is not a model."""
MIN_DEFLATED = 4096
"""Arrays smaller than this number of bytes are not compressed."""
MAX_INFLATED = 1 << 32
"""Maximum total size of a model's decompressed arrays, in bytes; a small file must not exhaust the memory."""


@dataclasses.dataclass
class State:
    """Complete state of a model: its kind, plain values, arrays, and submodels.

    In a compact state, weights are rounded more coarsely, and those closest to zero are dropped.
    """

    kind: str
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    arrays: dict[str, npt.NDArray[Any]] = dataclasses.field(default_factory=dict)
    parts: dict[str, "State"] = dataclasses.field(default_factory=dict)
    compact: bool = False


def seeded(fit: Method) -> Method:
    """Decorate `fit`: while it runs, `random_state` is an integer, drawn from a generator if one was given.

    All parts of a model are then trained with the same seed, and each call of `fit` draws a new one.
    """

    @wraps(fit)
    def run(self: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        given, checkpoint = self.random_state, options.get("checkpoint")
        if checkpoint is not None:
            check_target("checkpoint", checkpoint)
        self.random_state = draw_seed(given, checkpoint=checkpoint)
        try:
            return fit(self, *args, **options)
        finally:
            self.random_state = given

    return cast(Method, run)


def _plain_value(value: object) -> object:
    """Return the value of a parameter as JSON represents it; a random number generator is saved as None."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    return value.item() if isinstance(value, np.generic) else value


class Field(Protocol):
    """Defines how one attribute of a model is saved and loaded."""

    def put(self, state: State, name: str, value: Any) -> None:  # noqa: ANN401
        """Add the attribute to a state."""

    def take(self, state: State, name: str) -> Any:  # noqa: ANN401
        """Remove the attribute from a state and return it, or raise `InputError` if it is invalid."""


def saved(**fields: Field) -> Mapping[str, Field]:
    """Return the fields of a class, by attribute name."""
    return MappingProxyType(fields)


class Model:
    """Base class of all models.

    A subclass is registered under its name when it is defined. Its models can then be saved and loaded.

    Attributes
    ----------
    fields : mapping of str to Field
        The fields of a fitted model that are saved, by attribute name. They include parameters that JSON
        cannot represent.
    unsaved : tuple of str
        Parameters that affect how the result is computed, but not the result.
    adjustable : tuple of str
        Parameters that a fitted model uses; the others are used by `fit` only.
    """

    fields: ClassVar[Mapping[str, Field]] = saved()
    unsaved: ClassVar[tuple[str, ...]] = ("n_jobs",)
    adjustable: ClassVar[tuple[str, ...]] = ("n_jobs",)
    random_state: Any
    """Of models with this parameter: a seed, a generator or None; an integer while a `seeded` method runs."""
    _state_keys: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys of fields in a state: names without the last underscore, unless another field has that name."""

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401
        super().__init_subclass__(**options)
        known = REGISTRY.setdefault(cls.__name__, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"a model named {cls.__name__} already exists in {known.__module__}; expected another name"
            )
        REGISTRY[cls.__name__] = cls  # redefined, as in a notebook
        bare = {name: name.rstrip("_") for name in cls.fields}
        cls._state_keys = {name: name if key != name and key in bare else key for name, key in bare.items()}

    @classmethod
    def param_names(cls) -> list[str]:
        """Return the names of the constructor's parameters."""
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, as in scikit-learn; with `deep`, also those of nested estimators."""
        params = {name: getattr(self, name) for name in self.param_names()}
        if deep:
            inner = {name: value for name, value in params.items() if hasattr(value, "get_params")}
            for name, value in inner.items():
                if not isinstance(value, type):
                    params |= {f"{name}__{key}": each for key, each in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401
        """Set parameters; ``name__inner`` sets a parameter of a nested estimator.

        Changing a parameter that is not `adjustable` means that the model must be fitted again before it is
        saved.
        """
        check_param_names(self, params)
        if self.is_fitted and not set(params) <= {*self.adjustable}:
            self._note_fitted()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if inner:
                owner = getattr(self, name)
                if not hasattr(owner, "set_params"):
                    raise InputError(
                        f"{name} is {owner!r}; expected an estimator with the parameter {inner}, "
                        f"so that {key} can be set"
                    )
                owner.set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def with_params(self, **changes: Any) -> Self:  # noqa: ANN401
        """Return an unfitted model with the same parameters, except for `changes`."""
        return type(self)(**{**self.get_params(deep=False), **changes})

    def using(self, **params: Any) -> Self:  # noqa: ANN401
        """Return a copy of this fitted model with other values for some parameters.

        Parameters
        ----------
        **params : object
            New values of parameters that affect the use of a fitted model, such as `n_jobs`.

        Raises
        ------
        InputError
            If a parameter is not `adjustable`, or its value is invalid.
        """
        check_param_names(self, params)
        for name in params:
            if name not in self.adjustable:
                having = [each for each in self.adjustable if each in self.param_names()]
                expected = f"one of {', '.join(having)}" if having else "none"
                found = f"{name} has no effect on a fitted {type(self).__name__}"
                raise InputError(f"{found}; expected {expected}; to change it, use with_params and fit again")
            check_param(name, params[name], constructor_hints(type(self))[name])  # type: ignore[arg-type]
        return copy(self).set_params(**params)

    def _learnt(self) -> list[Any]:
        return [vars(self).get(name) for name in self.fields if name not in self.param_names()]

    def _note_fitted(self) -> None:
        """Record the parameters used in `fit`, before one of them is changed."""
        if self._params_of_fit() is None:
            params = {name: repr(value) for name, value in self.get_params(deep=False).items()}
            self._fitted_with = (self._learnt(), params)

    def _params_of_fit(self) -> dict[str, str] | None:
        """Return the recorded parameters of the last `fit`, or None if there are none."""
        learnt, params = vars(self).get("_fitted_with", ((), None))
        is_same = all(one is other for one, other in zip(learnt, self._learnt(), strict=False))
        return params if learnt and is_same else None

    def _check_unchanged(self) -> None:
        """Raise `InputError` if a parameter has changed since `fit`."""
        for name, before in (self._params_of_fit() or {}).items():
            now = repr(getattr(self, name))
            if name not in (*self.adjustable, *self.unsaved) and now != before:
                found = f"{name} was {before} in fit and is now {now}"
                raise InputError(f"{found}; fit the model again, or restore the value, before saving")

    def result_params(self) -> dict[str, Any]:
        """Return the parameters that affect the result of fitting; estimators among them are unfitted."""
        return {
            name: value._with_result_params() if isinstance(value, Model) else value
            for name, value in self.get_params(deep=False).items()
            if name not in self.unsaved
        }

    def _with_result_params(self) -> Self:
        """Return an unfitted copy without the `unsaved` parameters, or the model itself if it has none."""
        if any(name in self.unsaved for name in self.param_names()):
            return type(self)(**self.result_params())
        return self

    def __repr__(self) -> str:
        defaults = {name: each.default for name, each in inspect.signature(type(self)).parameters.items()}
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not (value is defaults[name] or repr(value) == repr(defaults[name]))
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def is_fitted(self) -> bool:
        """Whether the model is fitted."""
        return all(hasattr(self, name) for name in self.fields)

    def check_is_fitted(self) -> None:
        """Raise `InputError` if the model is not fitted."""
        if not self.is_fitted:
            raise InputError(
                f"this {type(self).__name__} is not fitted; call fit first, or load a fitted one"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    def save(self, path: str | os.PathLike[str], *, compact: bool = False) -> None:
        """Write the model to one file, which `treewright.load` reads.

        Parameters
        ----------
        path : path
            File to write.
        compact : bool
            Round weights more coarsely and drop those closest to zero. The file is much smaller, and few
            predictions change.
        """
        save_state(self.get_state(compact=compact), path)

    def get_state(self, *, compact: bool = False) -> State:
        """Return the complete state of the model; a `compact` state drops the weights closest to zero."""
        self.check_is_fitted()
        self._check_unchanged()
        return self._put(self.fields, compact=compact)

    def get_params_state(self) -> State:
        """Return a state with the parameters only; the model need not be fitted."""
        return self._put({name: field for name, field in self.fields.items() if name in self.param_names()})

    def _put(self, fields: Mapping[str, Field], *, compact: bool = False) -> State:
        state = State(type(self).__name__, {PARAMS: self._saved_params()}, compact=compact)
        for name, field in fields.items():
            field.put(state, self._state_keys[name], getattr(self, name))
        return state

    def _saved_params(self) -> dict[str, Any]:
        params = {name: value for name, value in self.result_params().items() if name not in self.fields}
        return {name: _plain_value(value) for name, value in params.items()}

    @classmethod
    def from_state(cls, state: State, *, is_fitted: bool = True) -> Self:
        """Rebuild the model from its state.

        Parameters
        ----------
        state : State
            The result of `get_state`.
        is_fitted : bool
            If False, make an unfitted model from the result of `get_params_state`.

        Raises
        ------
        InputError
            If the state is not valid for this class.
        """
        rest = State(state.kind, dict(state.values), dict(state.arrays), dict(state.parts))
        params = rest.values.pop(PARAMS, {})
        own = cls.param_names()
        fields = {name: field for name, field in cls.fields.items() if is_fitted or name in own}
        found = {name: field.take(rest, cls._state_keys[name]) for name, field in fields.items()}
        model = cls(**params, **{name: found.pop(name) for name in list(found) if name in own})
        check_params(model)
        for name, value in found.items():
            setattr(model, name, value)
        refuse_rest(rest, cls.__name__)
        if is_fitted:
            model.check_fitted_state()
            model.restore()
        return model

    def take_fitted(self, other: Self) -> Self:
        """Copy the fitted attributes of another model, so that an interrupted `fit` changes nothing."""
        own = self.param_names()
        for name in self.fields:
            if name not in own:
                setattr(self, name, getattr(other, name))
        self.restore()
        return self

    def check_fitted_state(self) -> None:
        """Check that the attributes of a loaded model are consistent."""

    def restore(self) -> None:
        """Compute the attributes of a fitted model that are not saved."""


def load(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401
    """Load a model that `save` wrote, or one that is included in the package.

    To load a model of a class of your own, import the module of the class first.

    Parameters
    ----------
    path : path
        A file, or the name of a model in the package: ``"en"`` is the English pipeline.

    Returns
    -------
    Model
        The fitted model, of the class that was saved.

    Raises
    ------
    FormatError
        If the file is not a model, is corrupt, or was written in another version of the format.

    See Also
    --------
    Pipeline : Parses plain text.

    Examples
    --------
    >>> nlp = tw.load("en")
    >>> print(nlp("The dog barked.")[0].heads)
    [2 3 0 3]
    """
    state = load_state(find_model(path))
    try:
        with spelled_by(str):  # an error in a file does not concern the options of a command
            return find_class(state.kind).from_state(state)
    except MissingDependencyError:
        raise
    except UnknownModelError as error:
        owner = "a file" if error.kind == state.kind else f"a {state.kind} with a submodel"
        found = f"{owner} of kind {error.kind!r}"
        raise FormatError(os.fspath(path), 1, found, EXPECTED, help=HELP) from error
    except Exception as error:  # modified values can fail anywhere
        found = f"a corrupt {state.kind} ({' '.join(str(error).split())[:200]})"
        raise FormatError(os.fspath(path), 1, found, INTACT, help=HELP) from error


def find_model(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return `path` if it is a file, or else the file of the model with that name in the package.

    Raises
    ------
    FileNotFoundError
        If the name is neither a file nor a model in the package.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path is {path!r}; expected a file name or the name of a model in the package")
    name = os.fspath(path)
    included = MODELS_FOLDER / f"{name}.tw"
    is_plain = os.path.basename(name) == name
    if is_plain and not os.path.isfile(name) and included.exists():
        return included
    if is_plain and not os.path.splitext(name)[1] and not os.path.exists(name):
        models = ", ".join(sorted(each.stem for each in MODELS_FOLDER.glob("*.tw")))
        found = f"no such file; models in the package: {models} (to train another: treewright train pipeline)"
        raise FileNotFoundError(errno.ENOENT, found, name)
    return path


class UnknownModelError(InputError):
    """No model class has this name."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"a model of kind {kind!r}; expected {EXPECTED}")
        self.kind = kind


def find_class(kind: str) -> type[Model]:
    """Return the model class with this name: one that has been imported, or one of the package."""
    package: Any = importlib.import_module("treewright")
    if kind not in REGISTRY and kind in package.__all__:
        getattr(package, kind)  # importing the class registers it
    if kind not in REGISTRY:
        raise UnknownModelError(kind)
    return REGISTRY[kind]


@dataclasses.dataclass(frozen=True)
class Value:
    """A plain value that JSON can represent.

    Parameters
    ----------
    hint : type, optional
        An annotation that the value must satisfy, checked by `treewright._validate.check_param`.
    encode, decode : callable, optional
        Convert the attribute to a plain value, and back.
    """

    hint: Any = None
    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None

    def put(self, state: State, name: str, value: Any) -> None:  # noqa: ANN401
        """Add the value."""
        state.values[name] = self.encode(value) if self.encode else value

    def take(self, state: State, name: str) -> Any:  # noqa: ANN401
        """Remove and return the value."""
        value = state.values.pop(name)
        if self.hint is not None:
            plain = get_args(self.hint)[0] if get_origin(self.hint) is Annotated else self.hint
            if plain in (int, float, bool, str) and type(value) is not plain:
                raise InputError(f"{name} is {value!r}; expected {plain.__name__}")
            check_param(name, value, self.hint)
        return self.decode(value) if self.decode else value


@dataclasses.dataclass(frozen=True)
class Array:
    """A NumPy array.

    Parameters
    ----------
    kinds : str
        Allowed data types, as NumPy's kind codes: b, i, u or f.
    n_dimensions : int or None
        Number of dimensions; None for any.
    low, high : float, optional
        Bounds of all values, inclusive.
    is_increasing : bool
        Whether the values must be strictly increasing.
    is_finite : bool
        Whether to reject NaN and infinity.
    """

    kinds: str
    n_dimensions: int | None = 1
    low: float | None = None
    high: float | None = None
    is_increasing: bool = False
    is_finite: bool = True

    def put(self, state: State, name: str, value: Any) -> None:  # noqa: ANN401
        """Add the array."""
        state.arrays[name] = np.asarray(value)

    def take(self, state: State, name: str) -> npt.NDArray[Any]:
        """Remove and return the array."""
        array = state.arrays.pop(name)
        if array.dtype.kind not in self.kinds or self.n_dimensions not in (None, array.ndim):
            found = f"{name} is a {array.ndim}-dimensional array of {array.dtype}"
            shape = "an array" if self.n_dimensions is None else f"a {self.n_dimensions}-dimensional array"
            raise InputError(
                f"{found}; expected {shape} of {' or '.join(KINDS[kind] for kind in self.kinds)}"
            )
        if self.is_finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{name} contains NaN or infinity; expected finite numbers")
        if self.low is not None:
            expect((array >= self.low).all(), f"{name} of at least {self.low:g}")
        if self.high is not None:
            expect((array <= self.high).all(), f"{name} of at most {self.high:g}")
        if self.is_increasing:
            expect((array[1:] > array[:-1]).all(), f"{name} in increasing order")
        return array


@dataclasses.dataclass(frozen=True)
class Arrays:
    """Arrays of one kind, in a dictionary with integer keys."""

    item: Array

    def put(self, state: State, name: str, value: Any) -> None:  # noqa: ANN401
        """Add the arrays."""
        for key, array in value.items():
            self.item.put(state, f"{name}{key}", array)

    def take(self, state: State, name: str) -> dict[int, npt.NDArray[Any]]:
        """Remove and return the arrays, by key."""
        keys = [key for key in state.arrays if re.fullmatch(re.escape(name) + "[0-9]+", key)]
        return {int(key.removeprefix(name)): self.item.take(state, key) for key in keys}


@dataclasses.dataclass(frozen=True)
class ListOf:
    """A list of values that are saved by the same kind of field."""

    item: Field

    def put(self, state: State, name: str, value: Any) -> None:  # noqa: ANN401
        """Add the items and their number."""
        state.values[name] = len(value)
        for number, each in enumerate(value):
            self.item.put(state, f"{name}{number}", each)

    def take(self, state: State, name: str) -> list[Any]:
        """Remove and return the items."""
        n_items = Value(int).take(state, name)
        return [self.item.take(state, f"{name}{number}") for number in range(n_items)]


class Record:
    """A named tuple of fields.

    Parameters
    ----------
    kind : type
        The class of the tuple.
    **fields : Field
        A field for each attribute that is saved; the other attributes keep their defaults.
    """

    def __init__(self, kind: Callable[..., Any], **fields: Field) -> None:
        self.kind = kind
        self.fields = fields

    def put(self, state: State, name: str, value: Any) -> None:  # noqa: ANN401
        """Add the fields of the tuple."""
        for key, field in self.fields.items():
            field.put(state, f"{name}.{key}", getattr(value, key))

    def take(self, state: State, name: str) -> Any:  # noqa: ANN401
        """Remove and return the tuple."""
        return self.kind(**{key: field.take(state, f"{name}.{key}") for key, field in self.fields.items()})


class Submodel:
    """A model inside a model.

    Parameters
    ----------
    *kinds : type or str
        Allowed classes, including their subclasses. A class whose module is slow to import can be given as
        ``"module:Class"``.
    optional : bool
        Whether the submodel may be None.
    """

    is_fitted: ClassVar[bool] = True

    def __init__(self, *kinds: type[Model] | str, optional: bool = False) -> None:
        self.kinds = tuple(kind for kind in kinds if not isinstance(kind, str))
        self._named = {kind.partition(":")[2]: kind for kind in kinds if isinstance(kind, str)}
        self.optional = optional

    def put(self, state: State, name: str, value: Model | None) -> None:
        """Add the model."""
        if value is not None:
            compact = state.compact
            state.parts[name] = (
                value.get_state(compact=compact) if self.is_fitted else value.get_params_state()
            )

    def take(self, state: State, name: str) -> Any:  # noqa: ANN401
        """Remove and return the model."""
        if self.optional and name not in state.parts:
            return None
        part = state.parts.pop(name)
        is_named = part.kind in self._named
        if is_named:
            importlib.import_module(self._named[part.kind].partition(":")[0])
        kind = find_class(part.kind)
        if not (is_named or issubclass(kind, self.kinds)):
            expected = " or ".join([*(each.__name__ for each in self.kinds), *self._named])
            raise InputError(f"{name} is a {part.kind}; expected {expected}")
        return kind.from_state(part, is_fitted=self.is_fitted)


class Unfitted(Submodel):
    """A nested estimator that is a parameter: only its parameters are saved."""

    is_fitted = False


@dataclasses.dataclass(frozen=True)
class Classes:
    """Class labels, in an array whose values JSON can represent."""

    def put(self, state: State, name: str, value: npt.NDArray[Any]) -> None:
        """Add the labels and their type."""
        state.values[name] = {"labels": value.tolist(), "type": value.dtype.str}

    def take(self, state: State, name: str) -> npt.NDArray[Any]:
        """Remove and return the labels."""
        value = state.values.pop(name)
        labels = np.array(value["labels"], dtype=value["type"])
        expect(labels.ndim == 1 and len(labels) > 0, f"a list of {name}")
        return labels


@dataclasses.dataclass(frozen=True)
class Coded:
    """A value with its own functions that convert it to a state and back."""

    encode: Callable[[Any], State]
    decode: Callable[[State], Any]

    def put(self, state: State, name: str, value: Any) -> None:  # noqa: ANN401
        """Add the state of the value; nothing is added for None."""
        if value is not None:
            state.parts[name] = self.encode(value)

    def take(self, state: State, name: str) -> Any:  # noqa: ANN401
        """Remove and return the value."""
        return self.decode(state.parts.pop(name)) if name in state.parts else None


def refuse_rest(state: State, owner: str) -> None:
    """Raise `InputError` if a state has entries that do not belong to any field."""
    for what, left in (("value", state.values), ("array", state.arrays), ("part", state.parts)):
        if left:
            raise InputError(
                f"{owner} has an unknown {what} {quote(next(iter(left)))}; expected only its fields"
            )


def expect(is_sound: bool | np.bool_, what: str) -> None:
    """Raise `InputError` if the arrays of a model are inconsistent."""
    if not is_sound:
        raise InputError(f"the arrays are inconsistent; expected {what}")


def is_within(numbers: npt.NDArray[Any], size: int, *, low: int = 0) -> bool:
    """Return whether all numbers are at least `low` and less than `size`."""
    return bool(((numbers >= low) & (numbers < size)).all())


def save_state(state: State, path: str | os.PathLike[str]) -> None:
    """Write a model. The file is written completely or not at all, unless it is a pipe or a device."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    header = _pack(state, "", arrays)
    checksum = _digest(header, arrays)
    deflated = {name: found for name, array in arrays.items() if (found := _deflate(array)) is not None}
    content = {
        "format": FORMAT_VERSION,
        "version": __version__,
        "checksum": checksum,
        "model": header,
        "deflated": {name: [arrays[name].dtype.str, list(arrays[name].shape)] for name in deflated},
    }
    # A single entry: safetensors writes several in arbitrary order.
    metadata = {METADATA: _as_json(content)}
    with replacing(Path(path)) as stream:
        stream.write(save(arrays | deflated, metadata))


def identify(state: State) -> str:
    """Return a fingerprint of a model, which changes with any change to the model."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    return _digest(_pack(state, "", arrays), arrays)


def _digest(header: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256(_as_json(header).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _deflate(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | None:
    """Compress an array, with bytes grouped by their position in a number; None if that saves little."""
    if array.nbytes < MIN_DEFLATED:
        return None
    planes = np.ascontiguousarray(array.reshape(-1).view(np.uint8).reshape(-1, array.itemsize).T)
    found = np.frombuffer(zlib.compress(planes.tobytes(), 6), dtype=np.uint8)
    return found if found.nbytes < 0.9 * array.nbytes else None


def _inflate(
    arrays: Mapping[str, npt.NDArray[Any]], deflated: Mapping[str, tuple[str, list[int]]]
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `_deflate` compressed."""
    found = {}
    n_bytes = 0
    for name, (letters, shape) in deflated.items():
        kind = np.dtype(letters)
        if kind.hasobject or any(not isinstance(size, int) or size < 1 for size in shape):
            raise ValueError(f"array {name} has type {letters} and shape {shape}")
        size = math.prod(shape) * kind.itemsize
        n_bytes += size
        if n_bytes > MAX_INFLATED:
            raise ValueError(f"the arrays have more than {MAX_INFLATED:,} bytes")
        raw = zlib.decompressobj().decompress(arrays[name].tobytes(), size + 1)
        if len(raw) != size:
            raise ValueError(f"array {name} has {len(raw)} bytes instead of {size}")
        planes = np.frombuffer(raw, dtype=np.uint8).reshape(kind.itemsize, -1)
        found[name] = np.ascontiguousarray(planes.T).reshape(-1).view(kind).reshape(shape)
    return found


def _as_json(content: dict[str, Any]) -> str:
    """Return JSON that UTF-8 can encode; lone surrogates are escaped."""
    text = json.dumps(content, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(content)
    return text


def load_state(path: str | os.PathLike[str]) -> State:
    """Read the state of a model from a file.

    Raises
    ------
    FormatError
        If the file is not a model, is corrupt, or was written by another version of treewright.
    """
    name = os.fspath(path)
    with open(path, "rb"):
        pass  # let the system report a missing or unreadable file
    try:
        with safe_open(name, framework="numpy") as stream:
            metadata = stream.metadata() or {}
            if METADATA not in metadata:
                found = "a safetensors file from another program"
                raise FormatError(name, 1, found, "a treewright model", help=HELP)
            content = json.loads(metadata[METADATA])
            if content["format"] != FORMAT_VERSION:
                is_newer = content["format"] > FORMAT_VERSION
                age = "a newer" if is_newer else "an older"
                found = f"a model from treewright {content['version']} in {age} format"
                remedy = "update treewright to read it" if is_newer else "train the model again"
                raise FormatError(name, 1, found, f"format {FORMAT_VERSION}; {remedy}", help=HELP)
            arrays = {key: stream.get_tensor(key) for key in stream.keys()}  # noqa: SIM118
        arrays |= _inflate(arrays, content["deflated"])
        if _digest(content["model"], arrays) != content["checksum"]:
            raise FormatError(name, 1, "a wrong checksum: the file is corrupt", INTACT, help=HELP)
        return _unpack(content["model"], "", arrays)
    except UNREADABLE as error:
        found = f"not a readable model ({error})"
        raise FormatError(name, 1, found, "a treewright model", help=HELP) from error


def _pack(state: State, prefix: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Collect the arrays of a model and its submodels; return everything else."""
    for key, array in state.arrays.items():
        if SEPARATOR in key:
            raise InputError(f"an array is named {key!r}; expected a name without {SEPARATOR!r}")
        arrays[prefix + key] = np.ascontiguousarray(array)
    parts = {key: _pack(part, f"{prefix}{key}{SEPARATOR}", arrays) for key, part in state.parts.items()}
    return {"kind": state.kind, "values": state.values, "parts": parts}


def _unpack(header: dict[str, Any], prefix: str, arrays: dict[str, npt.NDArray[Any]]) -> State:
    own = {
        key.removeprefix(prefix): array
        for key, array in arrays.items()
        if key.startswith(prefix) and SEPARATOR not in key.removeprefix(prefix)
    }
    parts = {key: _unpack(part, f"{prefix}{key}{SEPARATOR}", arrays) for key, part in header["parts"].items()}
    return State(str(header["kind"]), dict(header["values"]), own, parts)
