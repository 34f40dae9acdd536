// A consumer in Node over HTTP: pull events under a lease, do the work, acknowledge. No library is needed.
//
//   PATRA_URL=http://127.0.0.1:8642 PATRA_TOKEN=… node examples/pull_consumer.mjs task.submitted tasks-in-node
//
// An event that is not acknowledged in time, or whose acknowledgement is lost, comes back under the same `event_id`;
// `already` stands for whatever keeps the work from being done twice (a unique key in a table of yours). What is
// published with an acknowledgement (`publish`) needs no such care: it exists if, and only if, the event is handled.
const [type, group, once] = process.argv.slice(2);
const url = process.env.PATRA_URL ?? "http://127.0.0.1:8642";
const token = process.env.PATRA_TOKEN;
const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };

async function call(act, body) {
  const answer = await fetch(`${url}/bus/groups/${group}/${act}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${act}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const already = new Set();
for (;;) {
  const asked = { types: { [type]: ">=1" }, max: 10, wait_seconds: once ? 0 : 20, lease_seconds: 60, from_beginning: true };
  const deliveries = await call("pull", asked).then((pulled) => pulled.deliveries, (error) => {
    if (once) throw error;
    console.error(String(error)); // the server is being restarted, or out of reach
  });
  if (!deliveries) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    continue;
  }
  for (const { delivery, event, attempt } of deliveries) {
    try {
      if (!already.has(event.event_id)) console.log(`attempt ${attempt}: ${event.event_type} ${event.event_id}`);
      already.add(event.event_id);
      await call("ack", { deliveries: [delivery] });
    } catch (error) {
      await call("nack", { deliveries: [delivery], detail: String(error) }).catch(() => {}); // or its lease runs out
    }
  }
  if (once && deliveries.length === 0) break;
}
