import {
  indexRow,
  sameDefinition,
  type CollectionInfo,
  type IndexInfo,
  type Core,
} from '../core/core.js';
import type { Slice } from '../core/slice.js';
import { compareNames, nameOf } from '../storage/overlay/overlay.js';
import { GrowingBytes } from '../value/bytes.js';
import { sortInSlices } from '../query/sort.js';
import type { IndexDefinition } from '../format/entries.js';
import { messageOf } from '@millrace/kit/errors';
import { mustRebuild } from '../core/search-segments.js';
import { CommitBuilder, moveEntries } from './mutations.js';
import type { PutRow, RemoveRow } from '../storage/file/tables.js';
import type { RecordImage } from '../format/record.js';
import { idLength, prefixKey, prefixLength, readId } from '../format/keys.js';

const recordsPerStep = 200;
const rowsPerStep = 2_000;
/** Memory of the entries that are sorted at a time. */
export const runLimit = { bytes: 64 * 2 ** 20 };
const entryLength = idLength + 4;
/** Memory of an entry, and of a value that no other has. */
const entryOverhead = 28;
const valueOverhead = 80;
const noBytes = Buffer.alloc(0);

/** Indexes declared to `open`, by collection. */
export type DeclaredIndexes = ReadonlyMap<string, readonly IndexDefinition[]>;

/**
 * Makes the indexes on disk match the declarations. New ones start in state `building`: from then
 * on every write updates them, while `build` adds the existing records, a few at a time between
 * other writes. Queries use an index only when it is `ready`.
 */
export async function reconcileIndexes(core: Core, declared: DeclaredIndexes): Promise<void> {
  for (const name of declared.keys()) await core.ensureCollection(name);
  const stale = core.catalog
    .indexes()
    .filter(
      (index) =>
        !isDeclared(declared, index) ||
        index.state === 'failed' ||
        (index.definition.kind === 'search' && mustRebuild(index.id, core.store)),
    );
  for (const index of stale) await drop(core, index);
  for (const [collection, definitions] of declared) {
    for (const definition of definitions) await declare(core, collection, definition);
  }
}

/** Builds all indexes that are not ready. Resolves when every index is ready or has failed. */
export async function buildIndexes(core: Core, signal: AbortSignal): Promise<void> {
  for (const index of core.catalog.indexes()) {
    if (index.state === 'building' && !signal.aborted) await build(core, index, signal);
  }
}

function isDeclared(declared: DeclaredIndexes, index: IndexInfo): boolean {
  const definitions = declared.get(index.collection) ?? [];
  return definitions.some((each) => sameDefinition(each, index.definition));
}

async function declare(core: Core, name: string, definition: IndexDefinition): Promise<void> {
  const isKnown = () =>
    core.catalog.find(name)!.indexes.some((index) => sameDefinition(index.definition, definition));
  if (isKnown()) return;
  await core.writer.submit(() => {
    // The job may run twice.
    if (isKnown()) return;
    const id = Math.max(core.state.nextIndex, core.catalog.nextIndex);
    core.writer.state = { ...core.state, nextIndex: id + 1 };
    core.catalog.addIndex({
      id,
      collection: name,
      definition,
      state: 'building',
      problem: '',
      multi: false,
      cut: false,
    });
  });
}

async function build(core: Core, index: IndexInfo, signal: AbortSignal): Promise<void> {
  const collection = core.catalog.find(index.collection)!;
  const isOver = () => signal.aborted || !collection.indexes.includes(index);
  const { unique, kind } = index.definition;
  try {
    // Unique values are checked against those of other writes, and segments are made by batches.
    // A small index is ready after one job.
    const jobs = unique || kind === 'search' ? Infinity : 1;
    const after = await buildInJobs(core, index, collection, { isOver, jobs });
    if (after !== undefined) await new RunBuild(core, index, collection, isOver, after).build();
    if (signal.aborted) return;
    const isReady = await core.writer.submit(() => {
      const isThere = collection.indexes.includes(index) && index.state !== 'failed';
      if (isThere) core.catalog.setIndexState(index, 'ready');
      return isThere;
    });
    if (isReady) core.log.info({ index: index.name }, 'Index is ready');
  } catch (error) {
    if (!collection.indexes.includes(index)) return;
    // Not in a job: on a full disk it would fail as well. Stored with the next commit.
    core.catalog.setIndexState(index, 'failed', messageOf(error));
    core.log.error({ index: index.name, err: error }, 'Index could not be built');
  }
}

/** Returns the last record that is in the index if there may be more. */
async function buildInJobs(
  core: Core,
  index: IndexInfo,
  collection: CollectionInfo,
  { isOver, jobs }: { isOver: () => boolean; jobs: number },
): Promise<string | undefined> {
  let after: string | undefined;
  for (let job = 0; job < jobs; job++) {
    if (isOver()) return undefined;
    const from = after;
    after = await core.writer.submit(() => {
      if (!collection.indexes.includes(index) || index.state === 'failed') return undefined;
      const commit = new CommitBuilder(core);
      const records = core.view().scan(collection.id, { after: from }, () => true);
      const some = Array.from(take(records, recordsPerStep));
      for (const record of some) {
        // An expired record must not block a unique value.
        if (record.isExpired(commit.now) && !core.sealed) {
          commit.remove(collection, record, 'expire');
        } else addEntries(core, index, record);
      }
      commit.finish();
      return some.length === recordsPerStep ? some.at(-1)?.id : undefined;
    });
    if (after === undefined) break;
  }
  return after;
}

/**
 * Builds an index in runs: the entries of as many records as fit into memory are sorted, and
 * written to the file in the order of its pages, without the log: a build that is interrupted
 * starts again. A record that changes meanwhile is read again when its entries are written.
 */
class RunBuild {
  #run = new EntryRun();

  constructor(
    private readonly core: Core,
    private readonly index: IndexInfo,
    private readonly collection: CollectionInfo,
    private readonly isOver: () => boolean,
    /** The last record whose entries are in a run. */
    private after: string,
  ) {}

  async build(): Promise<void> {
    try {
      for (let isMore = true; isMore && !this.isOver();) isMore = await this.#buildSome();
    } finally {
      this.index.touched = undefined;
    }
  }

  /** Returns whether there may be more records. */
  async #buildSome(): Promise<boolean> {
    const { core, index } = this;
    // Snapshots after this job have everything that was written before the set was started.
    await core.writer.submit(() => void (index.touched = new Set()));
    const run = (this.#run = new EntryRun());
    const slice = core.newSlice();
    let isMore: boolean;
    do {
      await slice.pause();
      isMore = this.#read(slice);
    } while (isMore && run.bytes < runLimit.bytes && !this.isOver());
    await run.sort(slice);
    for (let at = 0; at < run.count && !this.isOver(); at += rowsPerStep) {
      const end = Math.min(at + rowsPerStep, run.count);
      await core.writer.submitDerived((put, remove) => this.#write(at, end, put, remove));
    }
    return isMore;
  }

  /** Adds the entries of some records. Returns whether there may be more. */
  #read(slice: Slice): boolean {
    const { core, index, collection } = this;
    const run = this.#run;
    const view = core.snapshot();
    try {
      const records = view.scan(collection.id, { after: this.after }, (image) => {
        const { values, multi, cut, payload } = index.compiled.entriesOf(image.stored(core.codec));
        core.catalog.noteEntry(index, multi, cut);
        for (const each of values) run.add(each, image, payload);
        return slice.spend(image.end) || run.bytes >= runLimit.bytes;
      });
      for (const { id } of records) {
        this.after = id;
        return true;
      }
      return false;
    } finally {
      view.done();
    }
  }

  #write(from: number, end: number, put: PutRow, remove: RemoveRow): void {
    const { index, collection } = this;
    if (!collection.indexes.includes(index) || index.state === 'failed') return;
    for (let i = from; i < end; i++) {
      const key = this.#run.key(index.id, i);
      const payload = this.#payloadNow(key, i);
      if (payload) put('index', key, payload);
      // The same keys if it runs again.
      else remove('index', key);
    }
  }

  /** What is stored beside an entry; undefined when its record has changed and has it no more. */
  #payloadNow(key: Buffer, i: number): Buffer | undefined {
    const { core, index, collection } = this;
    const touched = index.touched!;
    const idAt = key.length - idLength;
    const id = touched.size > 0 ? readId(key, idAt) : '';
    if (!touched.has(id)) return this.#run.payload(i);
    const record = core.view().record(collection.id, id)?.stored(core.codec);
    const entries = record && index.compiled.entriesOf(record);
    const has = entries?.values.some((each) => key.subarray(prefixLength, idAt).equals(each));
    return has ? (entries!.payload ?? noBytes) : undefined;
  }
}

/**
 * Entries of an index in memory. They are added in the order of their ids, so only the different
 * values are sorted.
 */
class EntryRun {
  /** The newest of the values with this hash; each has a number, and the one before it with it. */
  readonly #newest = new Map<number, number>();
  readonly #before: number[] = [];
  /** Strings with one character per byte. */
  readonly #values: string[] = [];
  readonly #counts: number[] = [];
  /** Of each entry its id and, as 32 bits, the number of its value. */
  readonly #entries = new GrowingBytes(64 * 1024);
  readonly #payloads: Buffer[] = [];
  #order = new Uint32Array(0);
  #key = noBytes;
  /** The number of the value in `#key`. */
  #keySlot = -1;
  bytes = 0;

  get count(): number {
    return this.#entries.at / entryLength;
  }

  add(values: Uint8Array, image: RecordImage, payload: Buffer | undefined): void {
    const slot = this.#slotFor(values);
    this.#counts[slot]!++;
    const entries = this.#entries;
    entries.reserve(entryLength);
    image.copyId(entries.bytes, entries.at);
    entries.view.setUint32(entries.at + idLength, slot);
    entries.at += entryLength;
    if (payload) this.#payloads.push(payload);
    this.bytes += entryOverhead + (payload?.length ?? 0);
  }

  /** A map of strings would need a string for each entry: a fifth of the time to add one. */
  #slotFor(values: Uint8Array): number {
    let hash = 0;
    for (let i = 0; i < values.length; i++) hash = (Math.imul(hash, 31) + values[i]!) & 0x3fffffff;
    const newest = this.#newest.get(hash) ?? -1;
    for (let slot = newest; slot >= 0; slot = this.#before[slot]!) {
      if (isName(this.#values[slot]!, values)) return slot;
    }
    const slot = this.#values.push(nameOf(values)) - 1;
    this.#newest.set(hash, slot);
    this.#before.push(newest);
    this.#counts.push(0);
    this.bytes += valueOverhead + values.length;
    return slot;
  }

  async sort(slice: Slice): Promise<void> {
    const starts = new Uint32Array(this.#values.length);
    let start = 0;
    const values = this.#values;
    const compare = (a: number, b: number) => compareNames(values[a]!, values[b]!);
    for (const slot of await sortInSlices([...values.keys()], compare, slice)) {
      starts[slot] = start;
      start += this.#counts[slot]!;
      if (slice.spend(0)) await slice.pause();
    }
    this.#order = new Uint32Array(this.count);
    for (let i = 0; i < this.count; i++) {
      this.#order[starts[this.#slotOf(i)]!++] = i;
      if (slice.spend(0)) await slice.pause();
    }
  }

  /** The key of the entry at this place in the order. Valid until the next one. */
  key(index: number, place: number): Buffer {
    const entry = this.#order[place]!;
    const slot = this.#slotOf(entry);
    const values = this.#values[slot]!;
    const length = prefixLength + values.length + idLength;
    if (this.#key.length !== length) this.#key = Buffer.allocUnsafe(length);
    const key = this.#key;
    if (slot !== this.#keySlot) {
      this.#keySlot = slot;
      key.writeUInt32BE(index, 0);
      for (let i = 0; i < values.length; i++) key[prefixLength + i] = values.charCodeAt(i);
    }
    const { bytes } = this.#entries;
    const from = entry * entryLength;
    const to = length - idLength;
    for (let i = 0; i < idLength; i++) key[to + i] = bytes[from + i]!;
    return key;
  }

  #slotOf(entry: number): number {
    return this.#entries.view.getUint32(entry * entryLength + idLength);
  }

  payload(place: number): Buffer {
    return this.#payloads[this.#order[place]!] ?? noBytes;
  }
}

function isName(name: string, bytes: Uint8Array): boolean {
  if (name.length !== bytes.length) return false;
  for (let i = 0; i < bytes.length; i++) if (name.charCodeAt(i) !== bytes[i]) return false;
  return true;
}

function addEntries(core: Core, index: IndexInfo, record: RecordImage): void {
  const entries = index.compiled.entriesOf(record.stored(core.codec));
  core.catalog.noteEntry(index, entries.multi, entries.cut);
  moveEntries(core, index, record.id, { values: [], unique: [] }, entries, true);
}

function* take<Item>(items: Iterable<Item>, count: number): Iterable<Item> {
  let left = count;
  for (const item of items) {
    yield item;
    if (--left === 0) return;
  }
}

/** The indexes of the settings and those of the system collection. */
export function allDeclared(core: Core, settings: DeclaredIndexes): DeclaredIndexes {
  const all = new Map(settings);
  for (const [name, definitions] of core.declaredIndexes) {
    all.set(name, [...(all.get(name) ?? []), ...definitions]);
  }
  return all;
}

async function drop(core: Core, index: IndexInfo): Promise<void> {
  // A partly removed index must not look complete to the next `open`. A build that is not over has
  // its rows in the file after this job, and writes no more of them.
  await core.writer.submit(() =>
    core.catalog.setIndexState(index, 'failed', 'It is being removed.'),
  );
  core.catalog.dropIndex(index);
  const range = { start: prefixKey(index.id), end: prefixKey(index.id + 1), limit: rowsPerStep };
  for (const table of ['index', 'unique'] as const) {
    for (;;) {
      const removed = await core.writer.submit(() => {
        const rows = Array.from(core.writer.range(table, range));
        for (const { key } of rows) core.writer.remove(table, key);
        return rows.length;
      });
      if (removed < rowsPerStep) break;
    }
  }
  await core.writer.submit(() => core.writer.remove('meta', Buffer.from(indexRow(index.id))));
}
