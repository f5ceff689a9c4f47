import { compileIndex, type CompiledIndex, type IndexDefinition } from '../format/entries.js';
import { checkCollectionName } from '../value/documents.js';
import type { CollectionSchema } from './json-schema.js';
import { refuse } from '../value/refusal.js';

/** A collection: its name, and the number that prefixes its rows. */
export interface CollectionInfo {
  id: number;
  name: string;
  indexes: IndexInfo[];
  /** TTL of records written without one; 0: they never expire. */
  defaultTtlMs: number;
  /** Validates every document that is written on this node. */
  schema: CollectionSchema | undefined;
  /** Dropped. The number stays, because the change log refers to it; hidden while empty. */
  isDropped: boolean;
}

/**
 * The collection of schemas and other declarations, one record each, so that they are replicated,
 * backed up and restored like records. Callers cannot use its name.
 */
export const systemCollection = '_catalog';

export interface IndexInfo {
  id: number;
  name: string;
  collection: string;
  definition: IndexDefinition;
  compiled: CompiledIndex;
  /** `building`: kept up to date by writes, not complete yet. `failed`: see `problem`. */
  state: 'building' | 'ready' | 'failed';
  problem: string;
  /** Some record has several entries: the index cannot give an order. */
  multi: boolean;
  /** Some entry was too long and is cut: the index cannot give an order. */
  cut: boolean;
}

/** The format of the catalog rows in the table `meta`. */
interface StoredCollection {
  id: number;
  name: string;
}
export interface StoredIndex {
  id: number;
  collection: string;
  definition: IndexDefinition;
  state: IndexInfo['state'];
  problem: string;
  multi: boolean;
  cut: boolean;
}

type PutMeta = (name: string, value: unknown) => void;

/** The collections and indexes. Loaded once, then served from memory. */
export class Catalog {
  readonly #byName = new Map<string, CollectionInfo>();
  readonly #byId = new Map<number, CollectionInfo>();
  /** Entries whose row on disk is out of date, and those being written now. */
  readonly #unsaved = new Set<CollectionInfo | IndexInfo>();
  readonly #saving = new Set<CollectionInfo | IndexInfo>();
  #nextCollection = 1;
  #nextIndex = 1;

  load(collections: Iterable<unknown>, indexes: Iterable<unknown>): void {
    for (const stored of collections) this.addCollection(stored as StoredCollection);
    for (const stored of indexes) this.addIndex(stored as StoredIndex);
    this.#unsaved.clear();
  }

  /** The next free numbers. A failed commit does not reset them, so no number is used twice. */
  get nextCollection(): number {
    return this.#nextCollection;
  }
  get nextIndex(): number {
    return this.#nextIndex;
  }

  find(name: string): CollectionInfo | undefined {
    return this.#byName.get(name);
  }

  /** The system collection; undefined before its first record. */
  get system(): CollectionInfo | undefined {
    return this.#system;
  }
  #system: CollectionInfo | undefined;

  byId(id: number): CollectionInfo {
    const info = this.#byId.get(id);
    if (!info) throw refuse('CORRUPT', `The file holds rows of an unknown collection ${id}.`);
    return info;
  }

  all(): CollectionInfo[] {
    return [...this.#byName.values()];
  }

  /** All collections and the system collection. */
  allWithSystem(): CollectionInfo[] {
    return this.#system ? [...this.all(), this.#system] : this.all();
  }

  indexes(): IndexInfo[] {
    return this.all().flatMap((collection) => collection.indexes);
  }

  addCollection(stored: StoredCollection): CollectionInfo {
    const isSystem = stored.name === systemCollection;
    if (!isSystem) checkCollectionName(stored.name);
    const info: CollectionInfo = {
      ...stored,
      indexes: [],
      defaultTtlMs: 0,
      schema: undefined,
      isDropped: false,
    };
    if (isSystem) this.#system = info;
    else this.#byName.set(info.name, info);
    this.#byId.set(info.id, info);
    this.#nextCollection = Math.max(this.#nextCollection, info.id + 1);
    this.#unsaved.add(info);
    return info;
  }

  addIndex(stored: StoredIndex): IndexInfo {
    const info = indexInfo(stored);
    this.#byName.get(stored.collection)?.indexes.push(info);
    this.#nextIndex = Math.max(this.#nextIndex, info.id + 1);
    this.#unsaved.add(info);
    return info;
  }

  dropIndex(index: IndexInfo): void {
    const collection = this.#byName.get(index.collection);
    if (collection) collection.indexes = collection.indexes.filter((each) => each !== index);
    this.#unsaved.delete(index);
    this.#saving.delete(index);
  }

  /** Records what an entry revealed about its index; stored with the next commit. */
  noteEntry(index: IndexInfo, multi: boolean, cut: boolean): void {
    if ((!multi || index.multi) && (!cut || index.cut)) return;
    index.multi ||= multi;
    index.cut ||= cut;
    this.#unsaved.add(index);
  }

  setIndexState(index: IndexInfo, state: IndexInfo['state'], problem = ''): void {
    index.state = state;
    index.problem = problem;
    this.#unsaved.add(index);
  }

  /** Writes every row that is out of date. Later changes belong to the next commit. */
  saveChanges(put: PutMeta): void {
    if (this.#unsaved.size === 0) return;
    for (const info of this.#unsaved) {
      if ('definition' in info) put(indexRow(info.id), storedIndex(info));
      else put(collectionRow(info.name), { id: info.id, name: info.name });
      this.#saving.add(info);
    }
    this.#unsaved.clear();
  }

  /** The commit of the last `saveChanges` is on disk. */
  saved(): void {
    if (this.#saving.size > 0) this.#saving.clear();
  }

  /** The commit failed: its rows are written with the next one. */
  notSaved(): void {
    for (const info of this.#saving) this.#unsaved.add(info);
    this.#saving.clear();
  }
}

function collectionRow(name: string): string {
  return `collection:${name}`;
}

export function indexRow(id: number): string {
  return `index:${id}`;
}

export function sameDefinition(a: IndexDefinition, b: IndexDefinition): boolean {
  return (
    a.fields.join('\0') === b.fields.join('\0') &&
    Boolean(a.unique) === Boolean(b.unique) &&
    Boolean(a.sparse) === Boolean(b.sparse)
  );
}

export function storedIndex(index: IndexInfo): StoredIndex {
  const { id, collection, definition, state, problem, multi, cut } = index;
  return { id, collection, definition, state, problem, multi, cut };
}

function indexInfo(stored: StoredIndex): IndexInfo {
  const { fields, unique } = stored.definition;
  const name = `${stored.collection}(${fields.join(',')})${unique ? ' unique' : ''}`;
  return { ...stored, name, compiled: compileIndex(stored.definition) };
}
