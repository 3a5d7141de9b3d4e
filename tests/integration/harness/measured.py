"""Values that a test measured, printed at the end of the run also when every test passes."""

VALUES = []


def measured(text):
    VALUES.append(text)
    print("measured:", text)
