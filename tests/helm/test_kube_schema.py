"""The judge of the manifests finds planted faults."""

import copy

import kube_schema
from chart import EXAMPLES, VERSIONS, render


def planted(version, change):
    document = copy.deepcopy(render(EXAMPLES[0], version).workload)
    change(document["spec"]["template"]["spec"])
    return kube_schema.problems(document, version)


def test_a_field_that_does_not_exist_is_found():
    for version in VERSIONS:
        found = planted(version, lambda pod: pod["containers"][0].update(command_="x"))
        assert len(found) == 1 and "'command_' was unexpected" in found[0]


def test_a_text_for_a_number_is_found():
    found = planted("1.33.1", lambda pod: pod.update(terminationGracePeriodSeconds="36"))
    assert "terminationGracePeriodSeconds: '36' is not of type" in found[0]


def test_a_sleeping_hook_of_a_later_version_is_found():
    def change(pod):
        pod["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 3}}}
    assert "'sleep' was unexpected" in planted("1.25.16", change)[0]
    assert planted("1.33.1", change) == []
