// The JavaScript SDK for SQS, driven by lines on standard input, {"operation", "parameters"}; each is
// answered by a line on standard output. Bytes travel as {"base64": ...}, both ways.
//   node node_sqs.js PATH_OF_NODE_MODULES CLIENT_OPTIONS_JSON
"use strict";
const { createRequire } = require("module");
const readline = require("readline");
const [modules, optionsText] = process.argv.slice(2);
const sdk = createRequire(`${modules}/here.js`)("@aws-sdk/client-sqs");
const client = new sdk.SQSClient(JSON.parse(optionsText));

function revive(_, value) {
  const isBytes = value !== null && typeof value === "object" && typeof value.base64 === "string";
  return isBytes ? Buffer.from(value.base64, "base64") : value;
}

function plain(value) {
  if (value instanceof Uint8Array) {
    return { base64: Buffer.from(value).toString("base64") };
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  }
  return value;
}

async function run(line) {
  const { operation, parameters } = JSON.parse(line, revive);
  try {
    const { $metadata, ...result } = await client.send(new sdk[`${operation}Command`](parameters));
    return { result: plain(result), status: $metadata.httpStatusCode, attempts: $metadata.attempts };
  } catch (error) {
    const metadata = error.$metadata ?? {};
    return {
      code: error.Code ?? error.name, name: error.name, message: error.message,
      status: metadata.httpStatusCode, attempts: metadata.attempts,
    };
  }
}

readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  process.stdout.write(`${JSON.stringify(await run(line))}\n`);
});
