"""`config` in values.schema.json is what `leasehold check --reference` says, no more and no less.

After a new option: LEASEHOLD_REWRITE_SCHEMA=1, then read the diff.
"""

import json
import os
import subprocess

from chart import CHART
from config_schema import LEFT_OUT, config_schema, parse
from harness.sidecar import binary

SCHEMA = CHART / "values.schema.json"


def reference():
    return subprocess.run([binary(), "check", "--reference"], capture_output=True, text=True,
                          check=True, timeout=30).stdout


def test_the_schema_knows_every_option_as_the_program_does():
    schema = json.loads(SCHEMA.read_text())
    expected = config_schema(reference())
    if os.environ.get("LEASEHOLD_REWRITE_SCHEMA"):
        schema["properties"]["config"] = expected
        SCHEMA.write_text(json.dumps(schema, indent=2) + "\n")
    assert schema["properties"]["config"] == expected, (
        "the options of sidecar.conf have changed; run this test once with "
        "LEASEHOLD_REWRITE_SCHEMA=1 and read the diff of helm/leasehold/values.schema.json")


def test_the_reference_was_understood_whole():
    text = reference()
    sections = [line.strip("[]") for line in text.splitlines() if line.startswith("[")]
    options = parse(text)
    assert list(dict.fromkeys(each[0] for each in options)) == sections
    # An option's two lines of explanation are indented; whatever else stands there is an option.
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "["))]
    assert len(options) == len(lines)
    assert LEFT_OUT <= set(sections)


def test_the_chart_renders_every_section():
    written = (CHART / "templates" / "_config.tpl").read_text()
    for section in {each[0] for each in parse(reference())} - LEFT_OUT:
        assert f'"{section}"' in written.partition("range $section := list")[2].partition("}}")[0]


def test_no_table_of_the_charts_own_takes_a_name_that_it_does_not_know():
    def walk(schema, path):
        if "properties" in schema and "const" not in str(schema["properties"].get("type", "")):
            assert schema.get("additionalProperties") is False, path
        for name, below in schema.get("properties", {}).items():
            walk(below, f"{path}.{name}")
        for key in ("items", "then", "else"):
            if isinstance(schema.get(key), dict):
                walk(schema[key], f"{path}.{key}")
    schema = json.loads(SCHEMA.read_text())
    walk(schema, "values")
    for name, below in schema["definitions"].items():
        walk(below, name)
