"""The API's own description: is it a right OpenAPI 3.1 document, and is it true?

Only what our document uses of OpenAPI is known here: anything else in it is reported, so that a new
construct comes with its check.
"""

import re

import jsonschema

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
# What objects of OpenAPI 3.1 may hold, beside "x-...", and must hold.
FIELDS = {
    "document": ({"openapi", "info", "servers", "paths", "components", "security", "tags"},
                 {"openapi", "info", "paths"}),
    "info": ({"title", "summary", "description", "license", "version", "contact"},
             {"title", "version"}),
    "operation": ({"tags", "summary", "description", "operationId", "parameters", "requestBody",
                   "responses", "security", "deprecated"}, {"operationId", "responses"}),
    "parameter": ({"name", "in", "description", "required", "style", "explode", "schema"},
                  {"name", "in", "schema"}),
    "request body": ({"description", "content", "required"}, {"content"}),
    "response": ({"description", "headers", "content"}, {"description"}),
    "header": ({"description", "required", "schema"}, {"schema"}),
    "media type": ({"schema", "example", "examples"}, {"schema"}),
    "components": ({"schemas", "responses", "parameters", "securitySchemes"}, set()),
}


class Document:
    def __init__(self, data):
        self.data = data
        self.problems = []

    def resolve(self, thing):
        while "$ref" in thing:
            at = self.data
            for step in thing["$ref"].removeprefix("#/").split("/"):
                at = at[step.replace("~1", "/").replace("~0", "~")]
            thing = at
        return thing

    # ---- the rules of OpenAPI ----

    def check(self):
        """Every breach of the rules, as sentences."""
        data = self.data
        self._fields("document", data, "the document")
        self._fields("info", data["info"], "info")
        self._fields("components", data["components"], "components")
        if not re.fullmatch(r"3\.1\.\d+", data["openapi"]):
            self._wrong(f"openapi: {data['openapi']}")
        seen = set()
        tags = {tag["name"] for tag in data.get("tags", [])}
        for path, item in data["paths"].items():
            if not path.startswith("/"):
                self._wrong(f"path {path} does not begin with a slash")
            for method, operation in item.items():
                self._operation(f"{method} {path}", path, method, operation, seen, tags)
        for name, schema in data["components"]["schemas"].items():
            self._schema(f"schema {name}", schema)
        for name, response in data["components"]["responses"].items():
            self._response(f"response {name}", response)
        self._references(data, "#")
        return self.problems

    def _wrong(self, sentence):
        self.problems.append(sentence)

    def _fields(self, kind, thing, where):
        may, must = FIELDS[kind]
        for key in thing:
            if key not in may and not key.startswith("x-"):
                self._wrong(f"{where}: {key} is not known of a {kind}")
        for key in must - set(thing):
            self._wrong(f"{where}: {key} is missing")

    def _operation(self, where, path, method, operation, seen, tags):
        if method not in METHODS:
            return self._wrong(f"{where}: no method of HTTP")
        self._fields("operation", operation, where)
        if operation["operationId"] in seen:
            self._wrong(f"{where}: operationId {operation['operationId']} twice")
        seen.add(operation["operationId"])
        if not set(operation.get("tags", [])) <= tags:
            self._wrong(f"{where}: a tag that is not declared")
        in_path = set()
        for parameter in operation.get("parameters", []):
            parameter = self.resolve(parameter)
            self._fields("parameter", parameter, f"{where}: a parameter")
            self._schema(f"{where}: parameter {parameter['name']}", parameter["schema"])
            if parameter["in"] == "path":
                in_path.add(parameter["name"])
                if parameter.get("required") is not True:
                    self._wrong(f"{where}: a path parameter is required")
            elif parameter["in"] not in ("query", "header", "cookie"):
                self._wrong(f"{where}: a parameter in {parameter['in']}")
        if in_path != set(re.findall(r"{([^}]+)}", path)):
            self._wrong(f"{where}: path and path parameters differ")
        for requirement in operation.get("security", []):
            for name in requirement:
                if name not in self.data["components"]["securitySchemes"]:
                    self._wrong(f"{where}: security scheme {name}")
        if "requestBody" in operation:
            body = self.resolve(operation["requestBody"])
            self._fields("request body", body, where)
            self._content(where, body["content"])
        if not operation["responses"]:
            self._wrong(f"{where}: no responses")
        for code, response in operation["responses"].items():
            if code != "default" and not re.fullmatch(r"[1-5](\d\d|XX)", code):
                self._wrong(f"{where}: status {code}")
            self._response(f"{where}: {code}", self.resolve(response))

    def _response(self, where, response):
        self._fields("response", response, where)
        for name, header in response.get("headers", {}).items():
            self._fields("header", header, f"{where}: header {name}")
            self._schema(f"{where}: header {name}", header["schema"])
        self._content(where, response.get("content", {}))

    def _content(self, where, content):
        for name, media in content.items():
            if not re.fullmatch(r"[a-z]+/[a-z0-9.+-]+(; *[a-z-]+=[a-zA-Z0-9.-]+)*", name):
                self._wrong(f"{where}: media type {name}")
            self._fields("media type", media, f"{where}: {name}")
            self._schema(where, media["schema"])

    def _schema(self, where, schema):
        """Schemas of OpenAPI 3.1 are those of JSON Schema 2020-12."""
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            self._wrong(f"{where}: {error.message}")

    def _references(self, thing, where):
        if isinstance(thing, dict):
            reference = thing.get("$ref")
            if reference is not None:
                try:
                    self.resolve(thing)
                except (KeyError, TypeError):
                    self._wrong(f"{where}: {reference} leads nowhere")
            for key, value in thing.items():
                self._references(value, f"{where}/{key}")
        elif isinstance(thing, list):
            for i, value in enumerate(thing):
                self._references(value, f"{where}/{i}")

    # ---- is it true? ----

    def operations(self):
        """{(method, path)}, as the program lists its routes."""
        return {(method.upper(), path) for path, item in self.data["paths"].items()
                for method in item}

    def errors_of(self, instance, schema):
        """Where an instance differs from a schema. Stricter than the schema: members it does not
        name are errors, so that what is answered is what is documented."""
        root = {"components": self.data["components"]}
        strict = self._strict({**root, **schema})
        checker = jsonschema.FormatChecker()
        return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}"
                for e in jsonschema.Draft202012Validator(strict, format_checker=checker)
                .iter_errors(instance)]

    def _strict(self, schema):
        if isinstance(schema, dict):
            schema = {key: self._strict(value) for key, value in schema.items()}
            if schema.get("type") == "object" and "properties" in schema:
                schema.setdefault("additionalProperties", False)
        elif isinstance(schema, list):
            schema = [self._strict(value) for value in schema]
        return schema

    def judge(self, method, path, answer):
        """What of an Answer is not as documented, as sentences; `path` as the document has it."""
        operation = self.data["paths"][path][method.lower()]
        responses = operation["responses"]
        where = f"{method} {path}: {answer.status}"
        if str(answer.status) in responses:
            response = self.resolve(responses[str(answer.status)])
        elif answer.status >= 400 and "default" in responses:
            response = self.resolve(responses["default"])
        else:
            return [f"{where} is not documented"]
        problems = [f"{where}: header {name} is missing"
                    for name, header in response.get("headers", {}).items()
                    if header.get("required") and name not in answer.headers]
        content = answer.headers["Content-Type"]
        if content not in response["content"]:
            return [*problems, f"{where}: {content} is not documented"]
        if content in ("application/json", "application/problem+json"):
            problems += [f"{where}: {error}" for error in
                         self.errors_of(answer.json(), response["content"][content]["schema"])]
            if content.endswith("problem+json") and answer.json()["status"] != answer.status:
                problems.append(f"{where}: the body says {answer.json()['status']}")
        return problems
