// An unmodified consumer: sqs-consumer with its defaults but for what the options say. Tells what it does
// in lines of JSON, each with the wall clock in ms.
//   node node_consumer.js PATH_OF_NODE_MODULES QUEUE_URL OPTIONS_JSON
// Options: handleMs (how long a message takes), consumer (options of sqs-consumer).
"use strict";
const { createRequire } = require("module");
const [modules, queueUrl, optionsText] = process.argv.slice(2);
const need = createRequire(`${modules}/here.js`);
const { Consumer } = need("sqs-consumer");
const options = JSON.parse(optionsText);

function tell(event, more) {
  process.stdout.write(`${JSON.stringify({ at: Date.now(), event, ...more })}\n`);
}

function about(message) {
  return {
    id: message.MessageId,
    body: message.Body,
    receives: Number(message.Attributes?.ApproximateReceiveCount ?? 0),
  };
}

const consumer = Consumer.create({
  queueUrl,
  messageSystemAttributeNames: ["ApproximateReceiveCount"],
  handleMessage: async (message) => {
    tell("began", about(message));
    if (options.handleMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, options.handleMs));
    }
    tell("done", about(message));
    return message;
  },
  ...options.consumer,
});
consumer.on("message_processed", (message) => tell("deleted", about(message)));
consumer.on("error", (error) => tell("error", { name: error.name, code: error.code, message: error.message }));
consumer.on("processing_error", (error) => tell("processing_error", { message: error.message }));
consumer.on("empty", () => tell("empty", {}));
consumer.on("stopped", () => process.exit(0));
process.on("SIGTERM", () => consumer.stop());
consumer.start();
tell("started", {});
