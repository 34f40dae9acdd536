/** The client for Node: a queue in a file, one process at a time. */

import { randomUUID } from "node:crypto";
import { closeSync, fstatSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";

import { Client } from "./core.js";

export { Client, pauseMs, retryAfterMs } from "./core.js";

const COMPACT_FROM_BYTES = 1024 * 1024;

/** Another process has the queue file open. */
export class QueueInUseError extends Error {}

/**
 * Events in a file of JSON lines: `[seq, batchId, body]` for an event, `[seq, …]` of numbers alone for what is gone.
 * An event is on the disk when `append` resolves; several that come together share one sync. A line that a crash cut
 * short was never acknowledged to anybody, and is left out.
 */
export class FileQueue {
  #path;
  #file;
  #kept = new Map();
  #seq = 0;
  #lines = [];
  #waiting = [];
  #writing = false;
  #synced = null;
  #size = 0;
  #torn = false;

  constructor(path) {
    this.#path = path;
    this.#lock();
    this.#read();
  }

  #lock() {
    const lock = `${this.#path}.lock`;
    for (let attempt = 0; attempt < 2; attempt += 1) {
      try {
        const file = openSync(lock, "wx");
        writeSync(file, String(process.pid));
        closeSync(file);
        return;
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
        const owner = Number(readFileSync(lock, "utf8"));
        if (attempt || (owner && owner !== process.pid && isAlive(owner)) || owner === process.pid) {
          throw new QueueInUseError(`${this.#path} is open in process ${owner}`);
        }
        rmSync(lock, { force: true }); // its process was killed
      }
    }
  }

  #read() {
    let text = "";
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
    for (const line of text.split("\n").slice(0, -1)) {
      let entry;
      try {
        entry = JSON.parse(line);
      } catch {
        continue;
      }
      if (typeof entry[1] === "string") this.#kept.set(entry[0], entry);
      else for (const seq of entry) this.#kept.delete(seq);
      this.#seq = Math.max(this.#seq, entry[0]);
    }
    this.#rewrite();
  }

  /** What is kept and nothing else, under the same name; whoever crashes meanwhile finds the old file or the new. */
  #rewrite() {
    const next = `${this.#path}.next`;
    const file = openSync(next, "w");
    for (const entry of this.#kept.values()) writeSync(file, `${JSON.stringify(entry)}\n`);
    fsyncSync(file);
    this.#size = fstatSync(file).size;
    closeSync(file);
    renameSync(next, this.#path);
  }

  async load() {
    return [...this.#kept.values()].map(([seq, batchId, body]) => ({ seq, batchId, body }));
  }

  async append(batchId, body) {
    this.#seq += 1;
    const entry = [this.#seq, batchId, body];
    this.#kept.set(this.#seq, entry);
    try {
      await this.#write(entry);
    } catch (error) {
      this.#kept.delete(entry[0]);
      throw error;
    }
    return entry[0];
  }

  async remove(seqs) {
    if (!seqs.length) return;
    for (const seq of seqs) this.#kept.delete(seq);
    await this.#write(seqs);
  }

  #write(entry) {
    this.#lines.push(`${JSON.stringify(entry)}\n`);
    const written = new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    if (!this.#writing) {
      this.#writing = true;
      this.#synced = this.#sync();
    }
    return written;
  }

  async #sync() {
    while (this.#lines.length) {
      const text = Buffer.from((this.#torn ? "\n" : "") + this.#lines.splice(0).join(""));
      const waiting = this.#waiting.splice(0);
      try {
        this.#file ??= await open(this.#path, "a");
        await this.#file.appendFile(text);
        await this.#file.datasync();
        this.#torn = false;
        this.#size += text.length;
        if (this.#size > COMPACT_FROM_BYTES && !this.#kept.size) {
          await this.#file.close();
          this.#file = null;
          this.#rewrite();
        }
        for (const { resolve } of waiting) resolve();
      } catch (error) {
        await this.#cutBack();
        for (const { reject } of waiting) reject(error);
      }
    }
    this.#writing = false; // in the step that found no line left: the next line begins anew
  }

  /** A full disk may have taken a part of what was written: the next line must not be joined to it. */
  async #cutBack() {
    try {
      await this.#file?.truncate(this.#size);
    } catch {
      this.#torn = true; // what is left of a line will stand alone, and is not read
    }
  }

  async close() {
    await this.#synced;
    await this.#file?.close();
    rmSync(`${this.#path}.lock`, { force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** A client whose queue is the file at `options.path`. */
export function createClient(options) {
  if (!options.path) throw new TypeError("path is needed: where the queue is kept");
  const route = randomUUID().replaceAll("-", ""); // the same in all requests: a balancer sends them to one intake
  return new Client(new FileQueue(options.path), { route, ...options });
}
