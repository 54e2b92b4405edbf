"""The part of JSON Schema that the schemas of this project use, so that checking them needs no package.

An unknown keyword is an error: a schema must not ask for something that nobody checks.
"""

import re

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}
_NOTES = {"$schema", "$id", "$defs", "title", "description"}


def complaints(schema, value):
    """What `value` lacks, one line each."""
    return list(_complaints(schema, value, "$", schema))


def _is_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, _TYPES[name])


def _complaints(schema, value, where, root):
    if schema is True:
        return
    if schema is False:
        yield f"{where}: expected nothing here"
        return
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from _complaints(target, value, where, root)
    for keyword, wanted in schema.items():
        if keyword in _NOTES or keyword == "$ref":
            continue
        if keyword == "type":
            names = wanted if isinstance(wanted, list) else [wanted]
            if not any(_is_type(value, name) for name in names):
                yield f"{where}: expected {' or '.join(names)}, found {value!r:.60}"
                return
        elif keyword == "const":
            if value != wanted:
                yield f"{where}: expected {wanted!r}, found {value!r:.60}"
        elif keyword == "enum":
            if value not in wanted:
                yield f"{where}: expected one of {wanted}, found {value!r:.60}"
        elif keyword == "pattern":
            if isinstance(value, str) and not re.search(wanted, value):
                yield f"{where}: expected {wanted}, found {value!r:.60}"
        elif keyword == "minLength":
            if isinstance(value, str) and len(value) < wanted:
                yield f"{where}: expected at least {wanted} characters, found {value!r}"
        elif keyword == "minimum":
            if _is_type(value, "number") and value < wanted:
                yield f"{where}: expected at least {wanted}, found {value!r}"
        elif keyword == "required":
            for key in wanted:
                if isinstance(value, dict) and key not in value:
                    yield f"{where}: expected a key {key!r}, found none"
        elif keyword == "properties":
            for key, inner in wanted.items():
                if isinstance(value, dict) and key in value:
                    yield from _complaints(inner, value[key], f"{where}.{key}", root)
        elif keyword == "additionalProperties":
            for key in value if isinstance(value, dict) else ():
                if key not in schema.get("properties", {}):
                    yield from _complaints(wanted, value[key], f"{where}.{key}", root)
        elif keyword == "propertyNames":
            for key in value if isinstance(value, dict) else ():
                yield from _complaints(wanted, key, f"{where}, the key {key!r}", root)
        elif keyword == "minProperties":
            if isinstance(value, dict) and len(value) < wanted:
                yield f"{where}: expected at least {wanted} keys, found {len(value)}"
        elif keyword == "items":
            for position, item in enumerate(value if isinstance(value, list) else ()):
                yield from _complaints(wanted, item, f"{where}[{position}]", root)
        elif keyword == "minItems":
            if isinstance(value, list) and len(value) < wanted:
                yield f"{where}: expected at least {wanted} items, found {len(value)}"
        elif keyword == "uniqueItems":
            if isinstance(value, list) and wanted and any(item in value[:i] for i, item in enumerate(value)):
                yield f"{where}: expected every item once"
        else:
            raise NotImplementedError(f"keyword {keyword} of the schema")
