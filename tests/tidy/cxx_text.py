"""Just enough of C++ to see its outlines: code without comments and literals, and what stands where.

Not a parser: it takes code as clang-format leaves it, and is asked rough questions only.
"""

import re
from dataclasses import dataclass

# A quote after a letter or digit is a digit separator (10'000), not the start of a character.
_LITERALS = re.compile(r"""
    //[^\n]* | /\*.*?\*/
  | R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"
  | "(?:\\.|[^"\\\n])*"
  | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'
""", re.X | re.S)


def bare(text):
    """The code with comments and the insides of literals blanked, line by line as it was."""
    def blank(match):
        found = match[0]
        kept = '""' if found[0] in '"R' else "''" if found[0] == "'" else ""
        lines = found.count("\n")
        return kept + "\n" * lines if lines else kept.ljust(len(found))
    return _LITERALS.sub(blank, text)


def without_preprocessor(code):
    """Directives (with their continuation lines) blanked, line by line."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), code, flags=re.M)


def includes(text):
    """(line number, name, quoted?) of every #include."""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found[2], found[1] == '"'


@dataclass
class Function:
    name: str
    line: int
    lines: int


@dataclass
class Variable:
    text: str
    line: int


def _plain(statement):
    """Without template arguments, attributes, operator signs and access specifiers."""
    statement = re.sub(r"\[\[.*?\]\]", " ", statement)
    statement = re.sub(r"\boperator\s*(\(\)|[-+*/%=<>!&|^~\[\]]+)", "operator_", statement)
    before = None
    while before != statement:
        before = statement
        statement = re.sub(r"<[^<>;{}=]*>|<[^<>;{}]*>", " ", statement)
    statement = re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", statement)
    return " ".join(statement.split())


def _opens(statement):
    """What a `{` after this statement opens: namespace, type, function or value."""
    plain = _plain(statement)
    if re.match(r'(inline )?namespace\b|extern ""', plain):
        return "namespace"
    paren, equals = plain.find("("), plain.find("=")
    if equals >= 0 and (paren < 0 or equals < paren):
        return "value"
    if re.match(r"(template |typedef )*(class|struct|union|enum)\b", plain) and paren < 0:
        return "type"
    return "function" if paren >= 0 else "value"


def outline(code):
    """Functions, and the variables of namespace scope, of bare code."""
    code = without_preprocessor(code)
    functions, variables = [], []
    stack = []          # (kind, statement, where it starts, open parentheses outside it)
    start, parens = 0, 0
    for match in re.finditer(r"[(){};]", code):
        sign, at = match[0], match.start()
        statement = code[start:at]
        inside = stack and stack[-1][0] in ("function", "value")
        if sign == "(":
            parens += 1
        elif sign == ")":
            parens = max(0, parens - 1)
        elif sign == "{":
            kind = "value" if inside or parens else _opens(statement)
            in_initialisers = kind == "function" and re.search(r"\)[\w\s]*:(?!:)", statement)
            if in_initialisers and re.search(r"[\w>]\s*$", statement):
                kind = "value"
            stack.append((kind, statement, start, parens))
            parens = 0
            if kind in ("namespace", "type", "function"):
                start = at + 1
        elif sign == "}":
            if not stack:
                continue
            kind, statement, began, parens = stack.pop()
            if kind == "function":
                first = began + re.match(r"(\s*(public|private|protected)\s*:(?!:))*\s*", statement).end()
                line = code.count("\n", 0, first) + 1
                names = re.findall(r"([~\w:]+|operator[^\s(]+)\s*\(", statement)
                functions.append(Function(names[0] if names else "?", line,
                                          code.count("\n", first, at) + 1))
            if kind == "value":
                start = began      # the statement goes on
            else:
                start = at + 1
        elif sign == ";" and not inside and not parens:
            if all(kind == "namespace" for kind, *_ in stack):
                found = _variable(code, statement, start)
                if found:
                    variables.append(found)
            start = at + 1
    return functions, variables


def _variable(code, statement, start):
    braces = statement.find("{")
    head = _plain(statement if braces < 0 else statement[:braces])
    if not head or re.match(r"(using|typedef|namespace|template|friend|static_assert|class|struct|union|"
                            r"enum|extern)\b", head):
        return None
    paren, equals = head.find("("), head.find("=")
    if paren >= 0 and (equals < 0 or paren < equals):
        return None
    if not re.match(r"[\w:]+[\s*&]+\w|(\w+ )+\w", head):
        return None
    first = start + len(statement) - len(statement.lstrip())
    return Variable(head.split("=")[0].strip(), code.count("\n", 0, first) + 1)


def is_constant(declaration):
    """May the variable never change after its initialisation?"""
    if re.search(r"\bconstexpr\b", declaration):
        return True
    pointer = declaration.rfind("*")
    return re.search(r"\bconst\b", declaration[pointer + 1:]) is not None


def static_locals(code):
    """Variables declared static or thread_local wherever they stand, that are not constant."""
    for match in re.finditer(r"(?<!\w)(?:static|thread_local)\s[^;{}]*[;{]", code):
        head = _plain(match[0][:-1])
        paren, equals = head.find("("), head.find("=")
        if paren >= 0 and (equals < 0 or paren < equals):
            continue
        declaration = head.split("=")[0].strip()
        if not is_constant(declaration):
            yield Variable(declaration, code.count("\n", 0, match.start()) + 1)
