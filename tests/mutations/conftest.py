"""The package stands in tests/, which is where its modules are named from."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
