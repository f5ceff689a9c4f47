import type { QueueSchema } from '@millrace/contract/queue';
import { StepFailed, TaskTimeout } from './errors.js';
import type { Backoff, TaskInfo } from './tasks.js';

/** Children of one step, and awaited tasks of one suspension. */
export const maxChildren = 1_000;

export const stepName = /^\P{Cc}{1,200}$/u;

/** `setTimeout` takes a millisecond, and Node has something faster. */
export const later: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;

interface Turn {
  order: number;
  isReady: boolean;
  begin: () => void;
}

/**
 * Turns of the event loop, in each of which one branch of a handler gets an outcome: in the order
 * of their records, and those without one last.
 */
export class Turns {
  readonly #turns: Turn[] = [];
  #isPlanned = false;

  get waiting(): number {
    return this.#turns.length;
  }

  /** Resolves in a turn of its own, but not before `ready` has settled. */
  next(order = Infinity, ready?: Promise<void>): Promise<void> {
    return new Promise((begin) => {
      const turn = { order, isReady: !ready, begin };
      this.#turns.push(turn);
      const isReady = () => {
        turn.isReady = true;
        this.#plan();
      };
      if (ready) ready.then(isReady, isReady);
      else this.#plan();
    });
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    later(() => {
      this.#isPlanned = false;
      const orders = this.#turns.map(({ order }) => order);
      const at = orders.indexOf(Math.min(...orders));
      if (!this.#turns[at]?.isReady) return;
      const [turn] = this.#turns.splice(at, 1);
      turn!.begin();
      if (this.#turns.length > 0) this.#plan();
    });
  }
}

/** What a branch of a handler waits for. */
export interface Wait {
  until?: number;
  signal?: string;
  tasks?: readonly string[];
  /** Those of `tasks` that have not ended. */
  open?: readonly string[];
}

export interface StepContext {
  readonly signal: AbortSignal;
  /** From 1. */
  readonly attempt: number;
  /** The same in every attempt of this step. */
  readonly idempotencyKey: string;
}

/** Its signal is read on demand, which may create it. */
export class UntimedStep implements StepContext {
  constructor(
    readonly attempt: number,
    readonly idempotencyKey: string,
    private readonly signalOf: () => AbortSignal,
  ) {}

  get signal(): AbortSignal {
    return this.signalOf();
  }
}

export async function callInTime<Result>(
  fn: (context: StepContext) => Result | Promise<Result>,
  about: Omit<StepContext, 'signal'>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Result> {
  const late = new AbortController();
  const error = new TaskTimeout(`The step took longer than ${timeoutMs} ms`);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timedOut = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      late.abort(error);
      reject(error);
    }, timeoutMs);
  });
  try {
    const either = AbortSignal.any([signal, late.signal]);
    return await Promise.race([fn({ ...about, signal: either }), timedOut]);
  } finally {
    clearTimeout(timer);
  }
}

/** One wait of all open branches: the first event wakes the task. */
export function suspensionOf(waits: readonly Wait[]): QueueSchema<'Suspension'> {
  const times = waits.flatMap(({ until }) => until ?? []);
  const signals = [...new Set(waits.flatMap(({ signal }) => signal ?? []))];
  const isOne = waits.length === 1;
  const awaited = waits.flatMap((wait) => (isOne ? (wait.tasks ?? []) : awaitedOf(wait)));
  const tasks = [...new Set(awaited)].slice(0, maxChildren);
  return {
    ...(times.length > 0 && { until: new Date(Math.min(...times)).toISOString() }),
    ...(signals.length > 0 && { signals }),
    ...(tasks.length > 0 && { tasks }),
    ...(isOne && tasks.length > 1 && { mode: 'all' as const }),
  };
}

/**
 * Beside other branches: tasks that have ended would wake the task again and again, and a branch
 * needs the last one before it goes on. Once all have ended, waiting for them gets their results.
 */
function awaitedOf({ tasks = [], open = [] }: Wait): readonly string[] {
  return open.length > 0 ? open.slice(-1) : tasks;
}

/** Results of one record, in bytes of JSON, with room for brackets. */
const maxPartBytes = 255 * 1024;

/** Results that one record may hold; several lists of them if they are too large for one. */
export function partsOf(results: readonly unknown[]): unknown[][] {
  const encoder = new TextEncoder();
  const parts: unknown[][] = [[]];
  let bytes = 0;
  for (const result of results) {
    const size = encoder.encode(JSON.stringify(result ?? null)).length + 1;
    if (bytes + size > maxPartBytes && bytes > 0) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(result ?? null);
    bytes += size;
  }
  return parts;
}

export function outcomeOf({ result, error }: QueueSchema<'Step'>): unknown {
  if (error) throw new StepFailed(error.message, error.type);
  return result ?? undefined;
}

export function isEnded(status: string): boolean {
  return status === 'SUCCEEDED' || status === 'DEAD';
}

/** Of a step, however its backoff grows. */
const maxBackoffMs = 30 * 86_400_000;

export function backoffMs(
  { kind, ms, maxMs = maxBackoffMs, jitter = 0 }: Backoff,
  attempt: number,
): number {
  const whole = Math.min(maxMs, kind === 'fixed' ? ms : ms * 2 ** (attempt - 1));
  return Math.min(maxBackoffMs, Math.max(0, whole * (1 - jitter * Math.random()) || 0));
}

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The same ULIDs in every run, so that a child is submitted once; others after a redrive. */
export async function childIds(
  { id, redriveCount }: TaskInfo,
  name: string,
  count: number,
): Promise<string[]> {
  const texts = Array.from({ length: count }, (_, i) => `${id} ${redriveCount} ${name}#${i}`);
  const hashes = sha256 ? texts.map(sha256) : await Promise.all(texts.map(webSha256));
  return hashes.map((hash) => {
    let text = id.slice(0, 10);
    for (let i = 0; i < 16; i++) text += digits[hash[i]! % 32];
    return text;
  });
}

// Web Crypto hashes in a thread, which took about a tenth of the CPU time of a child.
const sha256 = nodeSha256();

function nodeSha256(): ((text: string) => Uint8Array) | undefined {
  // No import, because a handler may be part of an edge runtime's bundle.
  const { process: node } = globalThis as { process?: Partial<typeof process> };
  const hash = node?.getBuiltinModule?.('node:crypto').hash;
  return hash && ((text) => hash('sha256', text, 'buffer'));
}

async function webSha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
}
