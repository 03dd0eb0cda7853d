"""The program `treewright`, also as `python -m treewright`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C is heard even while modules are being loaded."""
    try:
        from treewright.cli import run

        code = run()
    except KeyboardInterrupt:
        print("treewright: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
