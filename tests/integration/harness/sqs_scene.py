"""The usual scene of an sqs gate: a service, sidecars before it, clients that only know a sidecar."""

from . import aws_request


def sqs_gate(service, **more):
    return {"name": "queue", "type": "sqs", "upstream": service.url, "region": aws_request.REGION, **more}


def gate_url(one):
    """What an application's SDK gets as its endpoint."""
    return "http://%s:%d" % one.gate("queue")


def queue_url(one, service, name="orders"):
    """The queue's URL as the sidecar tells it: the service's path, the sidecar's host."""
    return gate_url(one) + service.queue_url(name).removeprefix(service.url)
