"""Exceptions that treewright raises."""

TROUBLESHOOTING = "howto/troubleshooting.md"


class TreewrightError(Exception):
    """Base class of all exceptions of treewright.

    Parameters
    ----------
    *args : object
        The message.
    help : str, optional
        Page and section of the documentation that explain what to do, if the message alone is not enough. The
        command line and tracebacks show it.

    See Also
    --------
    errors.InputError : An argument has an invalid value.
    errors.FormatError : A file is not in the expected format.

    Examples
    --------
    >>> try:
    ...     tw.DependencyParser(order=7).fit([])
    ... except tw.errors.TreewrightError as error:
    ...     print(error)
    order is 7; expected one of 1, 2, 3
    """

    help: str | None = None

    def __init__(self, *args: object, help: str | None = None) -> None:
        super().__init__(*map(_on_one_line, args))
        self.help = help or self.help
        if self.help is not None:
            self.add_note(f"see docs/{self.help}")


def _on_one_line(message: object) -> object:
    return " ".join(message.split()) if isinstance(message, str) and "\n" in message else message


class InputError(TreewrightError, ValueError):
    """An argument has an invalid value.

    Parameters
    ----------
    *args : object
        The message.
    help : str, optional
        Page and section of the documentation that explain what to do.

    See Also
    --------
    errors.FormatError : A file is not in the expected format.

    Examples
    --------
    >>> try:
    ...     tw.make_treebank(-1)
    ... except tw.errors.InputError as error:
    ...     print(error)
    n_sentences is -1; expected an integer of at least 0
    """


class MissingDependencyError(TreewrightError, ImportError):
    """A required optional package is not installed. The message contains the command that installs it.

    Parameters
    ----------
    *args : object
        The message.
    help : str, optional
        Page and section of the documentation that explain what to do.

    See Also
    --------
    errors.TreewrightError : The base class.

    Examples
    --------
    >>> raise tw.errors.MissingDependencyError("torch is not installed; install it with: pip install torch")
    Traceback (most recent call last):
    treewright.errors.MissingDependencyError: torch is not installed; install it with: pip install torch
    """


class FetchError(TreewrightError):
    """A treebank could not be downloaded, or its checksum is wrong.

    Parameters
    ----------
    *args : object
        The message.
    help : str, optional
        Page and section of the documentation that explain what to do.

    See Also
    --------
    fetch_treebank : Raises this error.

    Examples
    --------
    >>> tw.errors.FetchError.help
    'howto/troubleshooting.md#downloads'
    """

    help = f"{TROUBLESHOOTING}#downloads"


class ClusterError(TreewrightError):
    """A Dask cluster cannot be reached or used, or has lost a job too often.

    Parameters
    ----------
    *args : object
        The message.
    help : str, optional
        Page and section of the documentation that explain what to do.

    See Also
    --------
    gram : Raises this error, like all functions that take a `client`.

    Examples
    --------
    >>> tw.errors.ClusterError.help
    'howto/cluster.md#3-if-something-goes-wrong'
    """

    help = "howto/cluster.md#3-if-something-goes-wrong"


class TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM. Work stops as after Ctrl-C.

    See Also
    --------
    errors.TreewrightError : The base class of errors.

    Examples
    --------
    >>> issubclass(tw.errors.TerminatedError, KeyboardInterrupt)
    True
    """


class FormatError(TreewrightError):
    """A file or string is not in the expected format.

    Parameters
    ----------
    path : str
        Name of the file, as given by the caller; ``<stdin>`` or ``<string>`` if there is no file.
    line : int
        Number of the offending line, from 1.
    found : str
        The value found in that line.
    expected : str
        The value expected.
    help : str, optional
        Page and section of the documentation that explain what to do.

    See Also
    --------
    errors.InputError : An argument has an invalid value.

    Examples
    --------
    >>> print(tw.errors.FormatError("dev.conllu", 812, "HEAD is 'X9'", "an integer from 0 to 14"))
    dev.conllu:812: HEAD is 'X9'; expected an integer from 0 to 14
    """

    def __init__(self, path: str, line: int, found: str, expected: str, *, help: str | None = None) -> None:
        super().__init__(path, line, found, expected, help=help)
        self.path = path
        self.line = line
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found}; expected {self.expected}"


def show(value: object, limit: int = 100) -> str:
    """Write a value for an error message: on one line, and shortened.

    Parameters
    ----------
    value : object
        The value.
    limit : int
        Maximum number of characters.

    See Also
    --------
    errors.quote : Quotes text.

    Examples
    --------
    >>> show("x"), show([0] * 1000, 12)
    ("'x'", '[0, 0, 0, 0,...')
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else f"{text[:limit]}..."


def quote(text: str, limit: int = 60) -> str:
    """Quote text for an error message: escaped, on one line, and shortened.

    Parameters
    ----------
    text : str
        The text.
    limit : int
        Maximum number of characters.

    See Also
    --------
    errors.InputError : An error whose message may quote a value.

    Examples
    --------
    >>> print(tw.errors.quote("a very long word", limit=10))
    'a very ...'
    """
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
