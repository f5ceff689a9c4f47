import { createHash } from 'node:crypto';
import type { Json } from '../value/documents.js';
import { refuse } from '../value/refusal.js';
import type { Block, SortSpace, SpillFile } from '../storage/sort-space.js';
import { canonicalText } from './values.js';

// Shorter values stay in memory: the number of groups limits them.
const minSpilledBytes = 256;
// A longer text is identified by its digest: V8 hashes long texts badly.
const maxPlainLength = 64;
const entryBytes = 64;
/** For all values of all count_distinct that run in a database at the same time. */
const maxDistinctBytes = 256 * 1024 * 1024;

/** A value of a group: in memory, or in the temporary file. */
export class HeldValue {
  #value: Json | undefined;
  #block: Block | undefined;
  #bytes = 0;

  constructor(
    private readonly space: AggregateSpace,
    value?: Json,
  ) {
    if (value !== undefined) this.set(value);
  }

  get isEmpty(): boolean {
    return this.#value === undefined && !this.#block;
  }

  get(): Json | undefined {
    return this.#block ? (this.space.read(this.#block) as [Json])[0] : this.#value;
  }

  set(value: Json): void {
    const bytes = sizeOf(value);
    this.space.hold(this, bytes, this.#block ? 0 : this.#bytes);
    this.#block = undefined;
    this.#value = value;
    this.#bytes = bytes;
  }

  /** Moves the value to the temporary file. */
  spill(write: (items: readonly Json[]) => Block): number {
    this.#block = write([this.#value!]);
    this.#value = undefined;
    return this.#bytes;
  }
}

/** The memory of the groups of one aggregate. What exceeds it goes to a temporary file. */
export class AggregateSpace {
  readonly #leave: () => void;
  readonly #long = new Set<HeldValue>();
  #bytes = 0;
  #distinctBytes = 0;
  #file: SpillFile | undefined;

  constructor(private readonly sortSpace: SortSpace) {
    this.#leave = sortSpace.enter();
  }

  /** True when the memory is used up: call `spill` soon. */
  get isFull(): boolean {
    return this.#bytes > this.sortSpace.share && this.#long.size > 0;
  }

  /** Whether values are in the temporary file, so that comparing them takes longer. */
  get hasSpilled(): boolean {
    return this.#file !== undefined;
  }

  hold(value: HeldValue, bytes: number, before: number): void {
    this.#bytes += bytes - before;
    if (bytes >= minSpilledBytes) this.#long.add(value);
    else this.#long.delete(value);
  }

  /** Moves all long values to the temporary file, with pauses. */
  async spill(pause: () => Promise<void> | undefined): Promise<void> {
    const file = (this.#file ??= this.sortSpace.openFile());
    for (const value of this.#long) {
      this.#bytes -= value.spill((items) => file.write(items));
      this.#long.delete(value);
      await pause();
    }
  }

  read(block: Block): unknown {
    return this.#file!.read(block);
  }

  /** Counts one more distinct value of a count_distinct. Refuses GROUP_LIMIT. */
  countDistinct(entry: string | number | boolean | null): void {
    const bytes = entryBytes + (typeof entry === 'string' ? entry.length : 0);
    this.#distinctBytes += bytes;
    this.sortSpace.distinctBytes += bytes;
    if (this.sortSpace.distinctBytes <= maxDistinctBytes) return;
    const limit = String(maxDistinctBytes);
    const text =
      `The different values of count_distinct take more than ${maxDistinctBytes / 2 ** 20} MiB, ` +
      'which all queries share; narrow the filter.';
    throw refuse('GROUP_LIMIT', text, { limit });
  }

  close(): void {
    this.#leave();
    this.sortSpace.distinctBytes -= this.#distinctBytes;
    this.#file?.close();
  }
}

/** Identifies a value: itself, or a digest where it is long or nested. */
export function identityOf(value: Json): string | number | boolean | null {
  if (typeof value === 'object' && value !== null) return `o${digestOf(canonicalText(value))}`;
  if (typeof value !== 'string') return value;
  return value.length <= maxPlainLength ? `s${value}` : `l${digestOf(value)}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}

/** Estimated memory of a value. */
export function sizeOf(value: Json): number {
  if (typeof value === 'string') return 24 + value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let bytes = 48;
  for (const [name, part] of Object.entries(value)) bytes += name.length + 16 + sizeOf(part);
  return bytes;
}
