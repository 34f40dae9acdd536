/** The client for Node: a queue in a file, one process at a time. */

import { randomUUID, webcrypto } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, resolve as resolvePath } from "node:path";

import { Client } from "./core.js";

export { Client, pauseMs, retryAfterMs } from "./core.js";

globalThis.crypto ??= webcrypto; // Node 18 has it as a module only

const COMPACT_FROM_BYTES = 1024 * 1024;
const openPaths = new Set(); // of this process

/** Another process has the queue file open. */
export class QueueInUseError extends Error {}

/**
 * Events in a file of JSON lines: `[seq, batchId, body]` for an event, `[seq, …]` of numbers alone for what is gone.
 * An event is on the disk when `append` resolves; several that come together share one sync. A line that a crash cut
 * short was never acknowledged to anybody, and is left out. The file is rewritten when it has doubled, also while
 * events come and go without a pause.
 */
export class FileQueue {
  #path;
  #file;
  #kept = new Map(); // what the file holds
  #seq = 0;
  #lines = [];
  #waiting = [];
  #writing = false;
  #synced = null;
  #size = 0;
  #compactAt = COMPACT_FROM_BYTES;
  #torn = false;

  constructor(path) {
    this.#path = resolvePath(path);
    this.#lock();
    try {
      this.#read();
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** The lock is a file with the number of the process; a process that was killed leaves it behind. */
  #lock() {
    const lock = `${this.#path}.lock`;
    for (let attempt = 0; attempt < 2; attempt += 1) {
      try {
        const file = openSync(lock, "wx");
        writeSync(file, String(process.pid));
        closeSync(file);
        openPaths.add(this.#path);
        return;
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
        const owner = Number(readFileSync(lock, "utf8"));
        // In a container every process may have the same number as the one that was killed before it.
        const used = owner === process.pid ? openPaths.has(this.#path) : owner && isAlive(owner);
        if (attempt || used) throw new QueueInUseError(`${this.#path} is open in process ${owner}`);
        rmSync(lock, { force: true });
      }
    }
  }

  #unlock() {
    openPaths.delete(this.#path);
    rmSync(`${this.#path}.lock`, { force: true });
  }

  #read() {
    let text = "";
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
    const lines = text.split("\n");
    this.#torn = lines.pop() !== "";
    for (const line of lines) {
      let entry;
      try {
        entry = JSON.parse(line);
      } catch {
        continue;
      }
      this.#apply(entry);
    }
    this.#size = Buffer.byteLength(text);
    this.#rewrite();
  }

  #apply(entry) {
    if (typeof entry[1] === "string") this.#kept.set(entry[0], entry);
    else for (const seq of entry) this.#kept.delete(seq);
    this.#seq = Math.max(this.#seq, entry[0]);
  }

  /**
   * What is kept and nothing else, under the same name: a crash leaves the old file or the new. Where the disk has no
   * room for it, the old file stays in use.
   */
  #rewrite() {
    const next = `${this.#path}.next`;
    const text = Buffer.from([...this.#kept.values()].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    try {
      const file = openSync(next, "w");
      try {
        writeFileSync(file, text); // every byte of it, or an error
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(next, this.#path);
      this.#size = text.length;
      this.#torn = false;
      syncFolder(dirname(this.#path));
    } catch {
      freeRoom(next);
    }
    this.#compactAt = Math.max(COMPACT_FROM_BYTES, 2 * this.#size);
  }

  async load() {
    return [...this.#kept.values()].map(([seq, batchId, body]) => ({ seq, batchId, body }));
  }

  async append(batchId, body) {
    this.#seq += 1;
    const seq = this.#seq;
    await this.#write([seq, batchId, body]);
    return seq;
  }

  async remove(seqs) {
    if (seqs.length) await this.#write(seqs);
  }

  #write(entry) {
    this.#lines.push(`${JSON.stringify(entry)}\n`);
    const written = new Promise((resolve, reject) => this.#waiting.push({ entry, resolve, reject }));
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
      } catch (error) {
        await this.#cutBack();
        for (const { reject } of waiting) reject(error);
        continue;
      }
      for (const { entry } of waiting) this.#apply(entry);
      if (this.#size > this.#compactAt) {
        await this.#file.close().catch(() => {}); // it is synced
        this.#file = null;
        this.#rewrite();
      }
      for (const { resolve } of waiting) resolve();
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
    this.#unlock();
  }
}

/** Deletes a file that could not be written to its end. */
function freeRoom(path) {
  try {
    rmSync(path, { force: true });
  } catch {
    // what cannot be deleted is written over the next time
  }
}

/** Makes a renamed file's name durable, where the system can. */
function syncFolder(path) {
  try {
    const folder = openSync(path, "r");
    fsyncSync(folder);
    closeSync(folder);
  } catch {
    // Windows opens no folders
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
