import { compileIndex, type CompiledIndex, type IndexDefinition } from '../format/entries.js';
import { checkCollectionName } from '../value/documents.js';
import type { CollectionSchema } from './json-schema.js';
import { refuse } from '../value/refusal.js';

/** A collection, by name and by the number that its rows begin with. */
export interface CollectionInfo {
  id: number;
  name: string;
  indexes: IndexInfo[];
  /** Lifetime of records whose writer sets none; 0: unlimited. */
  defaultTtlMs: number;
  /** Validates every document that is written on this node. */
  schema: CollectionSchema | undefined;
  /** It was dropped. The number stays, because the change log names it; it is hidden while empty. */
  isDropped: boolean;
}

/**
 * The collection that holds schemas and other declarations, a record for each. They are replicated,
 * backed up and restored as records are. Its name is not one that a caller can use.
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

/** How the catalog lies in the table `meta`. */
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

/** Which collections and indexes there are. Loaded once; everything after is in memory. */
export class Catalog {
  readonly #byName = new Map<string, CollectionInfo>();
  readonly #byId = new Map<number, CollectionInfo>();
  /** Whose row on disk is out of date, and of those, whose is on its way there. */
  readonly #unsaved = new Set<CollectionInfo | IndexInfo>();
  readonly #saving = new Set<CollectionInfo | IndexInfo>();
  #nextCollection = 1;
  #nextIndex = 1;

  load(collections: Iterable<unknown>, indexes: Iterable<unknown>): void {
    for (const stored of collections) this.addCollection(stored as StoredCollection);
    for (const stored of indexes) this.addIndex(stored as StoredIndex);
    this.#unsaved.clear();
  }

  /** The numbers that nobody has. They count on also when a commit fails, so that none is met twice. */
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

  /** Notes what an entry showed about its index; written with the next commit. */
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

  /** Puts every row that is out of date. What changes from here on belongs to the next commit. */
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

  /** It is not: its rows go out with the next one. */
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
