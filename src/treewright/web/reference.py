"""The page /docs: the OpenAPI document as HTML, without external resources."""

from collections.abc import Mapping
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { border-top: 1px solid; padding-top: 1rem; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; }
th[scope=row] { font-weight: normal; }
"""
LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "pattern": "matching {}",
    "default": "default {}",
}
Schema = Mapping[str, Any]


def write_reference(document: Schema) -> str:
    """Return an OpenAPI document as one HTML page."""
    info = document["info"]
    operations = [
        _write_operation(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_write_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return "".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}: API reference</title><style>{STYLE}</style></head><body><main>",
            f"<h1>{title}: API reference</h1><p>{escape(info.get('description', ''))}</p>",
            '<p><a href="./">Web page</a>, <a href="openapi.json">OpenAPI document</a></p>',
            *operations,
            "<h2>Bodies</h2>",
            *schemas,
            "</main></body></html>",
        ]
    )


def _write_operation(path: str, method: str, operation: Schema) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(code)}</th><td>{escape(answer["description"])}</td>'
        f"<td>{_body_of(answer)}</td></tr>"
        for code, answer in operation["responses"].items()
    )
    asked = f"<p>Body: {_body_of(operation['requestBody'])}</p>" if "requestBody" in operation else ""
    return (
        f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
        f"<p>{escape(operation.get('summary', ''))}.</p>{asked}"
        '<div class="wide"><table><thead><tr><th scope="col">Code</th><th scope="col">Description</th>'
        f'<th scope="col">Body</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _body_of(part: Schema) -> str:
    kinds = [_type_of(each["schema"]) for each in part.get("content", {}).values() if "schema" in each]
    return " or ".join(kinds)


def _write_schema(name: str, schema: Schema) -> str:
    needed = schema.get("required", [])
    rows = "".join(
        f'<tr><th scope="row"><code>{escape(field)}</code></th><td>{_type_of(value)}</td>'
        f"<td>{'required' if field in needed else ''}</td><td>{_note_on(value)}</td></tr>"
        for field, value in schema.get("properties", {}).items()
    )
    return (
        f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
        f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'
    )


def _type_of(schema: Schema) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_type_of, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type_of(schema.get('items', {}))}"
    if "const" in schema or "enum" in schema:
        return " or ".join(escape(repr(value)) for value in schema.get("enum", [schema.get("const")]))
    return escape(str(schema.get("type", "anything")))


def _note_on(schema: Schema) -> str:
    notes = [template.format(schema[key]) for key, template in LIMITS.items() if schema.get(key) is not None]
    text = schema.get("description", "")
    return escape(" ".join([text, *(f"{note}." for note in notes)]).strip())
