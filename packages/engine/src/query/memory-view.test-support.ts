import { tmpdir } from 'node:os';
import { StoreCodec } from '../format/codec.js';
import type { JsonObject } from '../value/documents.js';
import { compileIndex, type CompiledIndex, type IndexDefinition } from '../format/entries.js';
import type {
  EntryRange,
  EntryRowVisit,
  EntryVisit,
  IdRange,
  ReadView,
  RecordTest,
} from '../storage/views.js';
import { encodeRecord, RecordImage } from '../format/record.js';
import { idBytes, readId } from '../format/keys.js';
import { Slice } from '../core/slice.js';
import { SortSpace } from '../storage/sort-space.js';
import type { QuerySource } from './source.js';

export interface TestRecord {
  id: string;
  data: JsonObject;
  key?: string;
  rev?: number;
  createdAt?: number;
  updatedAt?: number;
  expiresAt?: number;
}

let shapes: Uint8Array | undefined;
const codec = new StoreCodec({ load: () => shapes, save: (fresh) => (shapes = fresh) });

export function imageOf(record: TestRecord): RecordImage {
  const bytes = encodeRecord(
    {
      rev: record.rev ?? 1,
      seq: 1,
      createdAt: record.createdAt ?? 1000,
      updatedAt: record.updatedAt ?? 2000,
      expiresAt: record.expiresAt ?? 0,
      key: record.key ?? '',
      contentHash: 0,
    },
    codec.encode(record.data),
  );
  return new RecordImage(record.id, bytes, bytes.length, codec);
}

/** The n-th of a row of ids that grow with n. */
export function idOf(n: number): string {
  return '01ARZ3NDEKTSV4RRFFQ' + n.toString(8).padStart(7, '0');
}

interface Entry {
  key: Buffer;
  values: Buffer;
  id: string;
}

export interface TestIndex {
  id: number;
  compiled: CompiledIndex;
  state: 'building' | 'ready';
  multi: boolean;
  cut: boolean;
}

/**
 * One collection in memory. What a scan shows lies in one window that the next step overwrites,
 * as in the file, so that a query that holds on to it is found out.
 */
export class MemoryView implements ReadView {
  readonly seq = 1;
  readonly indexes: TestIndex[];
  readonly #images: RecordImage[];
  #window = Buffer.alloc(64 * 1024);
  readonly #entries: Entry[][];

  constructor(records: readonly TestRecord[], definitions: readonly IndexDefinition[] = []) {
    this.#images = records.map(imageOf).sort((a, b) => (a.id < b.id ? -1 : 1));
    this.indexes = definitions.map((definition, id) => ({
      id,
      compiled: compileIndex(definition),
      state: 'ready',
      multi: false,
      cut: false,
    }));
    this.#entries = this.indexes.map((index) => this.#build(index));
  }

  #build(index: TestIndex): Entry[] {
    const entries: Entry[] = [];
    for (const image of this.#images) {
      const found = index.compiled.entriesOf(image);
      index.multi ||= found.multi;
      index.cut ||= found.cut;
      for (const values of found.values) {
        const key = Buffer.concat([values, idBytes(image.id)]);
        entries.push({ key, values: Buffer.from(values), id: image.id });
      }
    }
    return entries.sort((a, b) => Buffer.compare(a.key, b.key));
  }

  record(_collection: number, id: string): RecordImage | undefined {
    return this.#images.find((image) => image.id === id)?.keep();
  }

  /** Overwrites what was shown before. */
  #show(bytes: Uint8Array): void {
    if (bytes.length > this.#window.length) this.#window = Buffer.alloc(bytes.length);
    this.#window.fill(0xc1);
    this.#window.set(bytes);
  }

  recordAt(_collection: number, ids: Uint8Array, at: number): RecordImage | undefined {
    const id = readId(ids, at);
    const found = this.#images.find((image) => image.id === id);
    if (!found) return undefined;
    this.#show(found.bytes);
    return new RecordImage(id, this.#window, found.end, codec);
  }

  idOfKey(_collection: number, key: string): string | undefined {
    return this.#images.find((image) => image.key === key)?.id;
  }

  idOfUnique(index: number, values: Uint8Array): string | undefined {
    return this.#entries[index]!.find((entry) => entry.values.equals(values))?.id;
  }

  *scan(_collection: number, range: IdRange, test: RecordTest): Iterable<RecordImage> {
    const { after, reverse } = range;
    for (const { id, bytes } of reverse ? this.#images.toReversed() : this.#images) {
      if (after !== undefined && (reverse ? id >= after : id <= after)) continue;
      this.#show(bytes);
      const image = new RecordImage(id, this.#window, bytes.length, codec);
      if (test(image)) yield image.keep();
    }
  }

  get(): Buffer | undefined {
    throw new Error('This view has no tables');
  }

  /** `start` is included and `end` is not, in the direction of travel. */
  entryRows(index: number, range: EntryRange, visit: EntryRowVisit): void {
    const none = Buffer.alloc(0);
    this.entries(index, range, (bytes, start, idAt) => visit(bytes, start, idAt + 16, none, 0));
  }

  entries(index: number, range: EntryRange, visit: EntryVisit): void {
    const { start, end, reverse } = range;
    const entries = this.#entries[index]!;
    const sign = reverse ? -1 : 1;
    for (const { key, values } of reverse ? entries.toReversed() : entries) {
      if (Buffer.compare(key, start) * sign < 0) continue;
      if (Buffer.compare(key, end) * sign >= 0) return;
      const shown = Buffer.concat([Buffer.from('in'), key]);
      const isEnough = visit(shown, 2, 2 + values.length);
      shown.fill(0xee);
      if (isEnough) return;
    }
  }

  expired(_collection: number, now: number, max: number): readonly string[] | undefined {
    const due = this.#images.filter((image) => image.isExpired(now));
    return due.length > max ? undefined : due.map(({ id }) => id);
  }
}

/** Wants a pause at every third record, and all the time in between. */
class RestlessSlice extends Slice {
  #count = 0;

  constructor() {
    super({ monotonic: () => 0, budgetMs: 0, pause: () => Promise.resolve() });
  }

  override spend(): boolean {
    return ++this.#count % 3 === 0;
  }
}

export function sourceOf(view: MemoryView, more: Partial<QuerySource> = {}): QuerySource {
  return {
    view,
    collection: { id: 1, name: 'things', indexes: view.indexes },
    now: 10_000,
    slice: new RestlessSlice(),
    sortSpace: new SortSpace(tmpdir()),
    ...more,
  };
}
