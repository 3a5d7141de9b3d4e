"""The schema of `config` in the chart's values, made from `leasehold check --reference`.

The reference is printed from the one option table, so the chart can neither miss an option nor keep
one that is gone. As in sidecar.conf, "redis.url" is redis: {url: ...}; [exec] is no matter of charts.
"""

import re

LEFT_OUT = {"exec"}
# A template's ${VAR} may stand for any value; where a pattern speaks, it lets that pass.
VARIABLE = r"\$\{"
DURATION = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$"
SIZE = r"^[0-9]+(B|KiB|MiB|GiB)$"
OPTION = re.compile(r"^([a-z_.]+)(?: = (.*)|   \(must be given\))$")


def parse(reference):
    """[(section, repeated, key, default or None, kind, range, gate or store types or None, why)]."""
    options = []
    section = repeated = None
    lines = reference.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("["):
            section, repeated = line.strip("[]"), line.startswith("[[")
        elif match := OPTION.match(line):
            what = lines[number + 1].strip().split("; ")
            kind, _, allowed = what[0].partition(": ")
            only = [re.findall(r'"(\w+)"', word) for word in what[1:]
                    if word.startswith("only for type = ")]
            options.append((section, repeated, match.group(1), match.group(2), kind, allowed,
                            only[0] if only else None, lines[number + 2].strip()))
    return options


def _or_variable(schema):
    return {"anyOf": [schema, {"type": "string", "pattern": VARIABLE}]}


def _number(kind, allowed):
    schema = {"type": kind}
    if allowed:
        low, high = allowed.split("..")
        as_number = int if kind == "integer" else float
        schema.update(minimum=as_number(low), maximum=as_number(high))
    return _or_variable(schema)


def _value(kind, allowed):
    if kind == "word":
        return _or_variable({"enum": allowed.split(" | ")})
    if kind in ("integer", "number"):
        return _number(kind, allowed)
    if kind == "boolean":
        return _or_variable({"type": "boolean"})
    if kind == "duration":
        return {"type": "string", "pattern": f"{DURATION}|{VARIABLE}"}
    if kind == 'duration or "auto"':
        return {"type": "string", "pattern": f"{DURATION}|^auto$|{VARIABLE}"}
    if kind == "size":
        return {"type": "string", "pattern": f"{SIZE}|{VARIABLE}"}
    if kind in ("text", "address"):
        return {"type": "string"}
    if kind == "list of texts":
        return {"type": "array", "items": {"type": "string"}}
    if kind == "list of integers":
        return {"type": "array", "items": _number("integer", allowed)}
    raise ValueError(f"the reference has a kind that the chart's schema does not know: {kind!r}")


def _table():
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _put(table, option):
    _, _, key, default, kind, allowed, _, why = option
    *outer, last = key.split(".")
    for name in outer:
        table = table["properties"].setdefault(name, _table())
    schema = _value(kind, allowed)
    if key == "redis.password":   # the ConfigMap would show it
        schema = {"type": "string", "pattern": r"^$|^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"}
    table["properties"][last] = {"description": why, **schema}
    if default is None:
        table.setdefault("required", []).append(last)


def _gates(options):
    """http unless type says otherwise; each kind with its own options and no others."""
    tables = {"http": _table(), "tcp": _table(), "sqs": _table()}
    for option in options:
        for kind, table in tables.items():
            if option[6] is None or kind in option[6]:
                _put(table, option)

    def is_of(kind):
        return {"properties": {"type": {"const": kind}}, "required": ["type"]}
    rest = {"if": is_of("sqs"), "then": tables["sqs"], "else": tables["http"]}
    return {"type": "array", "items": {"if": is_of("tcp"), "then": tables["tcp"], "else": rest}}


def config_schema(reference):
    options = [each for each in parse(reference) if each[0] not in LEFT_OUT]
    schema = _table()
    for name in dict.fromkeys(each[0] for each in options):
        mine = [each for each in options if each[0] == name]
        if name == "gate":
            schema["properties"][name] = _gates(mine)
            continue
        table = _table()
        for option in mine:
            _put(table, option)
        if mine[0][1]:
            table = {"type": "array", "minItems": 1, "items": table}
        schema["properties"][name] = table
    schema["required"] = ["node", "store", "lease", "gate"]
    return {"description": "sidecar.conf, one to one", **schema}
