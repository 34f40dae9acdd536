/** The client for browsers: a queue in IndexedDB, and a last attempt when the page goes away. */

import { byteLength, Client, randomId } from "./core.js";

export { Client, pauseMs, retryAfterMs } from "./core.js";

const STORE = "events";
const MAX_BEACON_BYTES = 60 * 1024;

/**
 * Events in IndexedDB. Every page owns those that it added, by a lock that ends with the page; a page that comes later
 * takes over what pages without a lock left behind. Where there are no Web Locks (an insecure origin) a page takes over
 * everything: two pages may then send the same batch, which the server answers as duplicates.
 */
export class IndexedDbQueue {
  #name;
  #owner = randomId();
  #release = () => {};
  #db;

  constructor(name) {
    this.#name = name;
    this.#db = this.#open();
    this.#db.catch(() => {}); // told by the first call that needs it
  }

  async #open() {
    await this.#hold(this.#owner);
    return new Promise((resolve, reject) => {
      const request = indexedDB.open(this.#name, 1);
      request.onupgradeneeded = () => {
        const store = request.result.createObjectStore(STORE, { keyPath: "seq", autoIncrement: true });
        store.createIndex("owner", "owner");
      };
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }

  /** Hold the lock of an owner until the page ends or the queue is closed; gives whether it was free. */
  #hold(owner) {
    if (!navigator.locks) return Promise.resolve(true);
    return new Promise((resolve, reject) => {
      const request = navigator.locks.request(`patra:${this.#name}:${owner}`, { ifAvailable: true }, (lock) => {
        if (!lock) return resolve(false);
        resolve(true);
        return new Promise((release) => {
          const before = this.#release;
          this.#release = () => {
            before();
            release();
          };
        });
      });
      request.catch(reject); // a page without storage
    });
  }

  async load() {
    const all = await this.#request("readonly", (store) => store.getAll());
    const owners = new Set(all.map((one) => one.owner));
    const free = new Set([this.#owner]);
    for (const owner of owners) if (owner !== this.#owner && (await this.#hold(owner))) free.add(owner);
    return all.filter((one) => free.has(one.owner));
  }

  append(batchId, body) {
    return this.#request("readwrite", (store) => store.add({ owner: this.#owner, batchId, body }));
  }

  remove(seqs) {
    return this.#request("readwrite", (store) => {
      for (const seq of seqs) store.delete(seq);
      return null;
    });
  }

  async close() {
    (await this.#db).close();
    this.#release();
  }

  async #request(mode, work) {
    const db = await this.#db;
    return new Promise((resolve, reject) => {
      const transaction = db.transaction(STORE, mode, { durability: "strict" });
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = () => reject(transaction.error);
    });
  }
}

/** A beacon where no key is needed; else a request that outlives the page, since a beacon has no headers. */
function lastAttempt(url, body, key) {
  if (byteLength(body) > MAX_BEACON_BYTES) return false;
  if (!key) return navigator.sendBeacon(url, new Blob([body], { type: "application/json" }));
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  fetch(url, { method: "POST", headers, body, keepalive: true }).catch(() => {});
  return true;
}

/** A client whose queue is the IndexedDB database `options.queue` ("patra-events" by default). */
export function createClient(options) {
  const client = new Client(new IndexedDbQueue(options.queue ?? "patra-events"), options);
  const leave = () => client.sendLast(lastAttempt);
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && leave());
  return client;
}
