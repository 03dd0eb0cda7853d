"""Running the command line in tests."""

from typer.testing import CliRunner

from treewright.cli import app


def run(*arguments):
    """Run a command that should succeed; return what it prints to each stream."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result
