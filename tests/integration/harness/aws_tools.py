"""Where the emulators and clients of AWS' services are that .ci/aws-tools fetched."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOLS = pathlib.Path(os.environ.get("LEASEHOLD_AWS_TOOLS", ROOT / "build" / "tools" / "aws"))


def tool(name):
    """The path of one that is started: node, dynalite, moto_server, aws."""
    return TOOLS / "bin" / name


def missing():
    """A sentence, in a list, if they are not there."""
    if (TOOLS / "stamp").exists():
        return []
    return [f"the AWS emulators are missing in {TOOLS}; get them with: .ci/deps aws, "
            "or name another folder in LEASEHOLD_AWS_TOOLS"]
