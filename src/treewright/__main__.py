"""Entry point of the program `treewright`, also run as `python -m treewright`."""

import signal
import sys
from types import FrameType

from treewright.errors import TerminatedError


def main() -> None:
    """Run the command line; handle Ctrl-C and SIGTERM even while modules are being imported."""
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _stop)
    try:
        from treewright.cli import run

        code = run()
    except TerminatedError:
        code = _end("terminated", 143)
    except KeyboardInterrupt:
        code = _end("interrupted", 130)
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.exit(code)


def _stop(number: int, frame: FrameType | None) -> None:
    raise TerminatedError


def _end(line: str, code: int) -> int:
    print(f"treewright: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
