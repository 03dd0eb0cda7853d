"""Running a function in a separate process, to measure its time and memory.

The process is ``python -m treewright.report.separate_process MODULE:FUNCTION``. It reads the argument of the
function as JSON, and writes one JSON object per line: messages, progress, and finally the result.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from treewright._cleanup import cleanup_on_interrupt
from treewright.errors import TreewrightError
from treewright.progress import Event, Message, Step, Task, listening, report, warnings_reported

Values = dict[str, Any]
"""Values that JSON can represent."""

INTERRUPTED, OUT_OF_MEMORY = 130, 137
"""Exit codes; the second is also the exit code of a process that the system kills in a container."""


class LostProcessError(TreewrightError):
    """A process ran out of memory or was killed."""


def run_alone(function: str, argument: Values) -> Values:
    """Run a function in a separate process.

    Parameters
    ----------
    function : str
        The function, as ``module:name``. The current process reports its progress.
    argument : dict
        Argument of the function. Like the result, it must be serializable as JSON.
    """
    command = [sys.executable, "-m", __name__, function]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    with subprocess.Popen(command, **pipes) as child, cleanup_on_interrupt(child.kill):
        try:
            result = _converse(child, argument)
            code = child.wait()
        except BaseException:
            child.kill()
            raise
    if code < 0 or code == OUT_OF_MEMORY:
        raise LostProcessError("ran out of memory" if code > 0 else f"was killed by signal {-code}")
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if result is None:
        raise TreewrightError(f"the process of {function} ended with code {code}; expected a result")
    return result


def _converse(child: subprocess.Popen[str], argument: Values) -> Values | None:
    """Send the argument, pass on messages, and return the result; None if there is none."""
    assert child.stdin
    assert child.stdout
    with suppress(BrokenPipeError), child.stdin as stream:
        json.dump(argument, stream)
    result = None
    with _tasks_elsewhere() as hear:
        for line in child.stdout:
            message = json.loads(line)
            if "told" in message:
                report(message["told"])
            elif "step" in message:
                hear(Step(*message["step"]))
            elif "error" in message:
                raise TreewrightError(message["error"])
            else:
                result = message["result"]
    return result


@contextmanager
def _tasks_elsewhere() -> Iterator[Callable[[Step], None]]:
    """Yield a function that reports the tasks of another process as tasks of this one."""
    tasks: dict[int, Task] = {}

    def hear(step: Step) -> None:
        if step.task not in tasks:
            tasks[step.task] = Task(step.what, step.total, step.unit, step.before)
        tasks[step.task].advance(step.done - tasks[step.task].done)
        if step.is_over:
            tasks.pop(step.task).end()

    try:
        yield hear
    finally:
        for each in tasks.values():
            each.end()


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not report it."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    # On Linux, `getrusage` never reports less than the parent's memory at the start of the process.
    if peak := next((line.split()[1] for line in lines if line.startswith("VmHWM:")), None):
        return int(peak) * 1024
    try:
        import resource
    except ImportError:
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


class _ReportHandler(logging.Handler):
    """Reports log records as messages."""

    def emit(self, record: logging.LogRecord) -> None:
        report(self.format(record))


@contextmanager
def _notices_reported() -> Iterator[None]:
    """Send log records and warnings to the parent process, which formats them."""
    logger, handler = logging.getLogger("treewright"), _ReportHandler()
    logger.addHandler(handler)
    try:
        with warnings_reported():
            yield
    finally:
        logger.removeHandler(handler)


def main(function: str, source: TextIO, target: TextIO) -> int:
    """Run a function, communicate with the parent through two streams, and return the exit code."""

    def send(kind: str, content: object) -> None:
        target.write(json.dumps({kind: content}) + "\n")
        target.flush()

    def hear(event: Event) -> None:
        if isinstance(event, Message):
            send("told", event.text)
        else:
            send("step", event)

    module, _, name = function.partition(":")
    try:
        run = getattr(import_module(module), name)
        with listening(hear), _notices_reported():
            result = run(json.load(source))
        send("result", result)
    except TreewrightError as error:
        send("error", str(error))
        return 2
    except MemoryError:
        return OUT_OF_MEMORY
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    messages, sys.stdout = sys.stdout, sys.stderr  # other output must not mix with the messages
    sys.exit(main(sys.argv[1], sys.stdin, messages))
