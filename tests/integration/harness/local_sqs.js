// local-aws-sqs on a port of the system's choice; says which, and ends with its parent's signal.
//   node local_sqs.js PATH_OF_NODE_MODULES QUEUE_NAME...
"use strict";
const [modules, ...names] = process.argv.slice(2);
const { createSqsServer } = require(`${modules}/local-aws-sqs`);

async function main() {
  const queues = names.map((name) => ({
    QueueName: name,
    Attributes: name.endsWith(".fifo") ? { FifoQueue: "true", ContentBasedDeduplication: "true" } : {},
  }));
  const server = await createSqsServer({ port: 0, hostname: "127.0.0.1", queues });
  console.log(`listening ${server.address().port}`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
