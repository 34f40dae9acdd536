import type { Event as PatraEvent } from "./events";

export * from "./events";

/** What became of one event: the item of the ACK, or the code of the refusal of its batch. */
export interface Answer {
  event: PatraEvent;
  status: "accepted" | "duplicate" | "rejected";
  code: string;
  serverEventKey: string | null;
  /** Of a rejected event: the field that was wrong. */
  fieldPath: string | null;
}

export interface Options {
  /** Where Patra is; events go to `URL/events`. */
  url: string;
  appId: string;
  /** The app's key, where the server asks for one. */
  key?: string;
  /** Node: the file of the queue. */
  path?: string;
  /** Browsers: the IndexedDB database of the queue, `patra-events` by default. */
  queue?: string;
  onAnswer?: (answer: Answer) => void;
  /** What went wrong beside sending: a disk that is full, a listener that threw, a key that the server refuses. */
  onError?: (error: unknown) => void;
  sdkVersion?: string;
  /** 100,000 by default. */
  maxWaitingEvents?: number;
  /**
   * The header `Patra-Route`, by which a balancer may send all requests of this client to one intake. Node: random by
   * default. Browsers: none by default, since the proxy would have to allow it in its answer to the preflight.
   */
  route?: string;
  /** Of one attempt; 30,000 by default. */
  timeoutMs?: number;
  /** gzip for batches of a kilobyte and more; true by default. */
  compress?: boolean;
}

export interface Client {
  /** Events that are not answered yet. */
  readonly waiting: number;
  /** Queue an event durably: true once it is, false when the queue is full or closed. */
  add(event: PatraEvent): Promise<boolean>;
  /** Wait until every event is answered, for at most so many milliseconds; gives whether it is so. */
  flush(ms: number): Promise<boolean>;
  /** Flush for at most so long (5,000 by default) and stop; what is left stays in the queue. */
  close(ms?: number): Promise<boolean>;
}

export function createClient(options: Options): Client;

/** Node: another process has the queue file open. */
export class QueueInUseError extends Error {}
