"""What can go wrong, as exceptions a caller can tell apart."""


class TreewrightError(Exception):
    """Base of every error that treewright raises on purpose."""


class InputError(TreewrightError, ValueError):
    """An argument or an object has a value that cannot be used."""


class MissingDependencyError(TreewrightError, ImportError):
    """An optional package is needed and not installed."""


class FetchError(TreewrightError):
    """A treebank could not be downloaded or is not what was recorded."""


class ClusterError(TreewrightError):
    """A cluster cannot be reached or used, or has lost its work too often."""


class TerminatedError(KeyboardInterrupt):
    """The system has asked the program to end (SIGTERM)."""


class FormatError(TreewrightError):
    """A file or a string is not in the format it should be in.

    Parameters
    ----------
    path : str
        The file as the caller named it; ``<stdin>`` or ``<string>`` where there is none.
    line : int
        Number of the offending line, from 1.
    found : str
        What stands there.
    expected : str
        What should stand there.
    """

    def __init__(self, path: str, line: int, found: str, expected: str) -> None:
        super().__init__(path, line, found, expected)
        self.path = path
        self.line = line
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found}; expected {self.expected}"


def quote(text: str, limit: int = 60) -> str:
    """Quote `text` for an error message: printable, on one line, not too long."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
