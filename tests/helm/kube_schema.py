"""Kubernetes' own API schemas, strict: an unknown or misplaced field is an error.

They are read from the wheel that `.ci/deps helm` fetches (build/tools/kubernetes-schemas.whl). Kinds
of an operator (PodMonitor) are not among them.
"""

import functools
import json
import re
import warnings
import zipfile

from chart import TOOLS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import jsonschema

WHEEL = TOOLS / "kubernetes-schemas.whl"
FOLDER = "kubernetes_validate/kubernetes-json-schema/v{}.0-local-strict/"


@functools.lru_cache(maxsize=None)
def _read(name):
    with zipfile.ZipFile(WHEEL) as wheel:
        return json.loads(wheel.read(name))


def _kind_file(document):
    # apps/v1 Deployment: deployment-apps-v1.json; networking.k8s.io/v1: ...-networking-v1.json
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", document["apiVersion"])
    return f"{document['kind'].lower()}-{group}.json"


def problems(document, version):
    """Sentences: what the API server of that version ("1.33.1") would not take."""
    folder = FOLDER.format(".".join(version.split(".")[:2]))
    definitions = _read(folder + "_definitions.json")
    schema = _read(folder + _kind_file(document))
    # Every reference is to one of the definitions; jsonschema's own resolver takes seconds for them.
    def follow(validator, reference, instance, _):
        return validator.descend(instance, definitions["$defs"][reference.rpartition("/")[2]])

    strict = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"$ref": follow})
    validator = strict(schema)
    return [f"{document['kind']} {'.'.join(map(str, error.path))}: {error.message[:300]}"
            for error in validator.iter_errors(document)]
