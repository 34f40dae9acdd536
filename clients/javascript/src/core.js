/**
 * How events are sent, whatever keeps them: the rules of Patra's reference client (src/patra/client.py).
 *
 * - An event gets its `batchId` when it is queued, and keeps it. A batch has at most 100 events; it is sealed before it
 *   is sent for the first time, so that sending it again can never count anything twice.
 * - One batch is under way at a time: what an app did first is what the server sees first.
 * - An ACK of the batch answers every item. Those that are `rejected` and `retryable` are sent again, in order, under
 *   their old `batchId`; all others leave the queue.
 * - 400, 413, 415: sending the same again is of no use; the events are answered with the code of the refusal.
 * - 401, 403: the key is wrong, not the events. They stay in the queue until a client with the right key sends them.
 * - Anything else, or no answer in time: the same events again, after `Retry-After` (seconds or a date, an hour at
 *   most), else after a pause that doubles each time, up to a minute, and varies.
 */

export const MAX_BATCH_EVENTS = 100;
export const MAX_BATCH_BYTES = 900 * 1024;
export const TAKEN_BYTES = 1024 * 1024;
const COMPRESS_FROM_BYTES = 1024;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
const MAX_RETRY_AFTER_MS = 3_600_000;
const UNEXPECTED_PAUSE_MS = 1_000;
const USELESS = new Set([400, 413, 415]);
const WRONG_KEY = new Set([401, 403]);

const utf8 = new TextEncoder();

/** How many bytes a text has in UTF-8. */
export function byteLength(text) {
  return utf8.encode(text).length;
}

/** A random UUID; a page of an insecure origin has no `crypto.randomUUID`. */
export function randomId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A `Retry-After` of seconds or of a date, in milliseconds from now; null where it is neither. */
export function retryAfterMs(text, now = Date.now()) {
  if (/^[0-9]+$/.test(text ?? "")) return Number(text) * 1000;
  const at = Date.parse(text ?? "");
  return Number.isNaN(at) ? null : Math.max(at - now, 0);
}

/** How long to wait before the attempt that follows `attempts` failed ones. */
export function pauseMs(attempts, retryAfter, random = Math.random) {
  if (retryAfter) return Math.min(retryAfter, MAX_RETRY_AFTER_MS);
  return (0.5 + random() / 2) * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempts - 1));
}

export class Client {
  #url;
  #options;
  #queue;
  #batches = [];
  #length = 0;
  #closing = false;
  #sending = false;
  #loaded = false;
  #wake = () => {};
  #abort = () => {};
  #idle = [];
  #running;

  /** @param queue what keeps the events: `load()`, `append(batchId, body)`, `remove(seqs)`, `close()`. */
  constructor(queue, options) {
    if (!options.url || !options.appId) throw new TypeError("url and appId are needed");
    this.#queue = queue;
    this.#url = `${options.url.replace(/\/+$/, "")}/events`;
    this.#options = {
      sdkVersion: "patra-javascript/1",
      maxWaitingEvents: 100_000,
      timeoutMs: 30_000,
      compress: true,
      onAnswer: () => {},
      ...options,
    };
    this.#running = this.#run();
  }

  /** Events that are not answered yet. */
  get waiting() {
    return this.#length;
  }

  /** Queue an event durably: true once it is, false when the queue is full or closed. */
  async add(event) {
    const body = JSON.stringify(event);
    if (body === undefined) throw new TypeError("the event has no JSON form");
    if (this.#closing || this.#length >= this.#options.maxWaitingEvents) return false;
    const batch = this.#openBatch(byteLength(body));
    this.#length += 1;
    const stored = this.#store(batch, event, body);
    batch.pending.add(stored);
    try {
      await stored;
    } catch (error) {
      this.#length -= 1;
      throw error;
    } finally {
      batch.pending.delete(stored);
    }
    this.#wake();
    return true;
  }

  /** Wait until every event is answered, for at most so long; gives whether it is so. */
  async flush(ms) {
    const until = performance.now() + ms; // no step of the clock makes it longer
    while (!this.#isIdle()) {
      const left = until - performance.now();
      if (left <= 0) return false;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#idle.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return true;
  }

  /**
   * Flush for at most so long and stop, also in the middle of a request; what is left stays in the queue. Gives whether
   * nothing is left.
   */
  async close(ms = 5_000) {
    const done = await this.flush(ms);
    if (!this.#closing) {
      this.#closing = true;
      this.#abort();
      this.#wake();
      await this.#running;
      await this.#queue.close();
    }
    return done;
  }

  /**
   * Hand every batch that is not answered to `send(url, body, key)`, once each; for the moment a page goes away. They
   * stay in the queue: nobody hears the answer, and what the server has counted it will call a duplicate.
   */
  sendLast(send) {
    for (const batch of this.#batches) {
      if (batch.sentLast || !batch.events.length) continue;
      batch.sealed = true;
      const body = this.#body(batch);
      if (!send(this.#url, body, this.#options.key)) return;
      batch.sentLast = true;
    }
  }

  #isIdle() {
    return this.#loaded && !this.#length && !this.#sending;
  }

  #openBatch(size) {
    const last = this.#batches.at(-1);
    const room = last && !last.sealed && last.count < MAX_BATCH_EVENTS && last.bytes + size + 1 <= MAX_BATCH_BYTES;
    const batch = room ? last : newBatch(randomId());
    if (!room) this.#batches.push(batch);
    batch.count += 1;
    batch.bytes += size + 1;
    return batch;
  }

  async #store(batch, event, body) {
    const seq = await this.#queue.append(batch.id, body);
    batch.events.push({ seq, event, body });
  }

  #take(records) {
    for (const { seq, batchId, body } of records) {
      let batch = this.#batches.find((one) => one.id === batchId);
      if (!batch) {
        batch = newBatch(batchId);
        batch.sealed = true; // it may have been sent
        this.#batches.push(batch);
      }
      batch.count += 1;
      batch.events.push({ seq, event: JSON.parse(body), body });
      this.#length += 1;
    }
  }

  /** What an earlier run left goes before what was added meanwhile. */
  async #load() {
    const records = await this.#queue.load();
    const early = this.#batches;
    this.#batches = [];
    this.#take(records.filter((one) => !early.some((batch) => batch.id === one.batchId)));
    this.#batches.push(...early);
    this.#loaded = true;
  }

  async #run() {
    while (!this.#closing) {
      let pause = 0;
      this.#sending = true;
      try {
        if (!this.#loaded) await this.#load();
        if (this.#batches.length) pause = await this.#sendOnce(this.#batches[0]);
      } catch (error) {
        pause = UNEXPECTED_PAUSE_MS; // a full disk, or a listener that threw: the next turn goes on
        this.#options.onError?.(error);
      }
      this.#sending = false;
      if (this.#isIdle()) for (const resolve of this.#idle.splice(0)) resolve();
      if (pause) await this.#sleep(pause, false);
      else if (!this.#batches.length) await this.#sleep(2 ** 31 - 1, true);
    }
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Wait; an event that is added ends the wait only where nothing else was to be sent. */
  #sleep(ms, untilAdded) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref?.(); // what waits in the queue does not keep a process alive
      this.#wake = () => {
        if (!untilAdded && !this.#closing) return;
        clearTimeout(timer);
        resolve();
      };
      if (this.#closing || (untilAdded && this.#batches.length)) this.#wake();
    });
  }

  async #sendOnce(batch) {
    batch.sealed = true;
    await Promise.allSettled(batch.pending);
    if (!batch.events.length) {
      this.#drop(batch);
      return 0;
    }
    const body = this.#body(batch);
    if (byteLength(body) > TAKEN_BYTES) return this.#giveUp(batch, "f_body_too_large");
    let reply;
    try {
      reply = await this.#post(body);
    } catch {
      return this.#pause(batch, null);
    }
    const ack = acknowledged(reply.text, batch);
    if (ack) return this.#settle(batch, ack, reply);
    const code = parsed(reply.text)?.code || `http_${reply.status}`;
    if (USELESS.has(reply.status)) return this.#giveUp(batch, code);
    if (WRONG_KEY.has(reply.status)) this.#options.onError?.(new Error(`the server refuses the key: ${code}`));
    return this.#pause(batch, reply);
  }

  #body(batch) {
    const head = JSON.stringify({
      batchId: batch.id,
      appId: this.#options.appId,
      sdkVersion: this.#options.sdkVersion,
      sentAt: new Date().toISOString(),
      schemaVersion: "1",
      retrySequence: batch.attempts,
    });
    return `${head.slice(0, -1)},"events":[${batch.events.map((one) => one.body).join(",")}]}`;
  }

  async #post(text) {
    const headers = { "Content-Type": "application/json" };
    if (this.#options.key) headers.Authorization = `Bearer ${this.#options.key}`;
    if (this.#options.route) headers["Patra-Route"] = this.#options.route;
    let body = text;
    if (this.#options.compress && typeof CompressionStream === "function" && text.length >= COMPRESS_FROM_BYTES) {
      const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
      body = await new Response(stream).arrayBuffer();
      headers["Content-Encoding"] = "gzip";
    }
    const controller = new AbortController();
    this.#abort = () => controller.abort();
    if (this.#closing) this.#abort();
    const timer = setTimeout(this.#abort, this.#options.timeoutMs); // of the whole answer, not only its first byte
    timer.unref?.();
    try {
      const { signal } = controller;
      const response = await fetch(this.#url, { method: "POST", headers, body, signal, redirect: "error" });
      return {
        status: response.status,
        retryAfter: retryAfterMs(response.headers.get("Retry-After")),
        text: await response.text(),
      };
    } finally {
      clearTimeout(timer);
    }
  }

  async #settle(batch, ack, reply) {
    const again = [];
    const answered = [];
    batch.events.forEach((one, index) => {
      const item = ack.ackItems[index];
      if (item.ackStatus === "rejected" && item.retryable) again.push(one);
      else answered.push({ one, item });
    });
    await this.#queue.remove(answered.map(({ one }) => one.seq));
    batch.events = again;
    this.#length -= answered.length;
    if (!again.length) this.#drop(batch);
    this.#tell(
      answered.map(({ one, item }) => ({
        event: one.event,
        status: item.ackStatus,
        code: item.ackReasonCode,
        serverEventKey: item.serverEventKey,
        fieldPath: item.extensions?.fieldPath ?? null,
      })),
    );
    return again.length ? this.#pause(batch, reply) : 0;
  }

  async #giveUp(batch, code) {
    await this.#queue.remove(batch.events.map((one) => one.seq));
    this.#length -= batch.events.length;
    this.#drop(batch);
    this.#tell(
      batch.events.map((one) => ({
        event: one.event,
        status: "rejected",
        code,
        serverEventKey: null,
        fieldPath: null,
      })),
    );
    return 0;
  }

  #drop(batch) {
    this.#batches.splice(this.#batches.indexOf(batch), 1);
  }

  /** Tell each answer once: a listener that throws costs nobody else theirs. */
  #tell(answers) {
    for (const answer of answers) {
      try {
        this.#options.onAnswer(answer);
      } catch (error) {
        this.#options.onError?.(error);
      }
    }
  }

  #pause(batch, reply) {
    batch.attempts += 1;
    return pauseMs(batch.attempts, reply?.retryAfter);
  }
}

function newBatch(id) {
  return { id, events: [], count: 0, bytes: 0, attempts: 0, sealed: false, sentLast: false, pending: new Set() };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The ACK, if the answer is one and answers these events, item by item, and not those of another sender. */
function acknowledged(text, batch) {
  const ack = parsed(text);
  if (ack?.batchId !== batch.id || !Array.isArray(ack.ackItems)) return null;
  const own = ack.ackItems.length === batch.events.length && ack.ackItems.every((item, i) => item.eventIndex === i);
  return own ? ack : null;
}
