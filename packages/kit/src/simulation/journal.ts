import { createHash } from 'node:crypto';

/** One thing that happened. */
export interface SimulationEvent {
  /** Virtual milliseconds since the start. */
  at: number;
  /** The node it happened on; "" for the world. */
  scope: string;
  kind: string;
  fields: object;
}

/**
 * Everything that happened, in order. Two runs of one seed must have the same hash; keeping only
 * the newest events in memory, it can cover days.
 */
export class Journal {
  #count = 0;
  readonly #hash = createHash('sha256');
  readonly #lines: string[] = [];

  /** `keep` is how many of the newest events stay readable. */
  constructor(private readonly keep: number) {}

  get count(): number {
    return this.#count;
  }

  /** The newest events, oldest of them first, one line each. */
  get lines(): readonly string[] {
    return this.#lines.slice(-this.keep);
  }

  add({ at, scope, kind, fields }: SimulationEvent): void {
    const text = JSON.stringify(fields, plainly);
    const line = `${at} ${scope || '-'} ${kind}${text === '{}' ? '' : ` ${text}`}`;
    this.#count++;
    this.#hash.update(line).update('\n');
    this.#lines.push(line);
    if (this.#lines.length >= 2 * this.keep) this.#lines.splice(0, this.#lines.length - this.keep);
  }

  /** Of all events up to now. */
  hash(): string {
    return this.#hash.copy().digest('hex');
  }
}

// Stacks hold line numbers, which are no part of what happened.
function plainly(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return value;
}
