"""Print the software bill of materials of this environment, as CycloneDX JSON.

    ENVIRONMENT/bin/python .ci/sbom.py > treewright.cdx.json

What treewright needs, directly or not, is listed with its version and licence, and what needs what. Nothing
but Python itself is needed for it, so that a clean environment stays clean.
"""

import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from typing import Any

ROOT = "treewright"


def normal_name(name: str) -> str:
    """Return a name as package indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed_by(found: Distribution) -> list[str]:
    """Return the packages that a package needs and that are here; those of extras are not."""
    names = []
    for requirement in found.requires or []:
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        if match and "extra ==" not in requirement:
            try:
                names.append(normal_name(distribution(match[0]).metadata["Name"]))
            except PackageNotFoundError:
                continue  # for another system or version of Python
    return sorted(set(names))


def collect() -> dict[str, list[str]]:
    """Return what each package needs that treewright needs."""
    found: dict[str, list[str]] = {}
    waiting = [ROOT]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = needed_by(distribution(name))
            waiting += found[name]
    return found


def reference(name: str) -> str:
    """Return the address of a package."""
    return f"pkg:pypi/{name}@{version(name)}"


def describe(name: str) -> dict[str, Any]:
    """Return the entry of a package."""
    metadata = distribution(name).metadata
    classes = [text for text in metadata.get_all("Classifier") or [] if text.startswith("License ::")]
    named = classes[0].rpartition(" :: ")[2] if classes else metadata.get("License")
    licence = metadata.get("License-Expression") or named or "unknown"
    return {
        "type": "application" if name == ROOT else "library",
        "bom-ref": reference(name),
        "name": name,
        "version": version(name),
        "purl": reference(name),
        "licenses": [{"license": {"name": licence.splitlines()[0][:100]}}],
    }


def make_bill() -> dict[str, Any]:
    """Return the whole bill; the same environment gives the same one."""
    needed = collect()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": describe(ROOT)},
        "components": [describe(name) for name in sorted(needed) if name != ROOT],
        "dependencies": [
            {"ref": reference(name), "dependsOn": [reference(each) for each in needed[name]]}
            for name in sorted(needed)
        ],
    }


if __name__ == "__main__":
    print(json.dumps(make_bill(), indent=2))
