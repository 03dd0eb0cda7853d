"""The default of each parameter in the reference, also where a docstring describes several in one line."""

from collections.abc import Iterator

from griffe import Alias, Class, DocstringSectionParameters, Extension, Function, GriffeLoader, Module, Object


class OwnDefaults(Extension):
    """Give parameters that share a description their own defaults; griffe gives them that of the first."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: object) -> None:
        """See `griffe.Extension`, which demands the signature."""
        for described in walk(pkg):
            mend_defaults(described)


def walk(root: Object) -> Iterator[Class | Function]:
    """Yield the classes and functions under `root`."""
    for member in root.members.values():
        if isinstance(member, Alias):
            continue
        if isinstance(member, Class | Function):
            yield member
        yield from walk(member)


def mend_defaults(described: Class | Function) -> None:
    """Take the defaults of described parameters from the signature."""
    if described.docstring is None:
        return
    defaults = {parameter.name: parameter.default for parameter in described.parameters}
    for section in described.docstring.parsed:
        if isinstance(section, DocstringSectionParameters):
            for parameter in section.value:
                if parameter.name in defaults:
                    parameter.value = defaults[parameter.name]
