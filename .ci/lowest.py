"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

python .ci/lowest.py > constraints-minimum.txt
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9.]+)")
LEFT_OUT = ("dev", "docs")
"""Extras for work on the package, which nobody installs to use it."""


def lowest_versions() -> dict[str, str]:
    """Return the lowest version of each package that the package or one of its extras needs."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = [project["dependencies"], *(extras[name] for name in extras if name not in LEFT_OUT)]
    found = [REQUIREMENT.match(requirement) for group in groups for requirement in group]
    return {match[1].lower(): match[2] for match in found if match}


if __name__ == "__main__":
    print("# The lowest versions that pyproject.toml allows; written by .ci/lowest.py, tried by .ci/minimum.")
    for name, version in sorted(lowest_versions().items()):
        print(f"{name}=={version}")
