/** Sends one impression and one click:  node samples/node.mjs http://127.0.0.1:8642 shop [KEY] */

import { createClient } from "../src/node.js";

const [url = "http://127.0.0.1:8642", appId = "shop", key] = process.argv.slice(2);
const run = crypto.randomUUID();
const client = createClient({
  url,
  appId,
  key,
  path: process.env.PATRA_QUEUE ?? "patra-events.queue",
  onAnswer: ({ event, status, code, fieldPath }) => console.log(event.eventType, status, code, fieldPath ?? ""),
});

const common = {
  eventAt: new Date().toISOString(),
  eventVersion: "1",
  traceKey: `trace-${run}`,
  requestKey: `request-${run}`,
  attemptKey: `attempt-${run}`,
  opportunityKey: `opportunity-${run}`,
  responseReference: `ref-${run}`,
  renderAttemptId: `render-${run}`,
};
await client.add({ ...common, eventId: `i-${run}`, eventType: "impression", creativeId: "creative-1" });
await client.add({ ...common, eventId: `c-${run}`, eventType: "click", clickTarget: "shop" });

// What is not answered in time stays in the file, and goes out when the program starts again.
process.exitCode = (await client.close(10_000)) ? 0 : 1;
