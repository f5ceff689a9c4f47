import {
  systemCollection,
  type CollectionInfo,
  type Core,
  sameDefinition,
  weightsText,
  whereText,
  type IndexInfo,
} from '../core/core.js';
import {
  type JsonObject,
  checkCollectionName,
  checkKey,
  refuse,
  toDocument,
} from '../value/documents.js';
import { hashText } from '../value/bytes.js';
import { plainFilter } from '../value/plain-query.js';
import { compileSchema, type CollectionSchema, type ValidateMode } from '../core/json-schema.js';
import {
  compileIndex,
  definitionOf,
  indexName as nameOfIndex,
  type DeclaredIndex,
  type IndexDefinition,
} from '../format/entries.js';
import { encodeDocument, type RecordImage } from '../format/record.js';
import { CommitBuilder } from './mutations.js';
import type { DeclaredIndexes } from './index-build.js';

/** A record of the system collection. */
interface Declaration {
  collection: string;
  /** As JSON: a schema may be nested deeper than a document. */
  schema?: string;
  validate?: ValidateMode;
  index?: IndexDefinition;
  /** The collection was dropped, or was renamed. */
  dropped?: true;
  /** The collection is being renamed to this. */
  renamedTo?: string;
}

/** Keys of the system collection. */
export const keyOf = {
  schema: (collection: string) => `schema:${collection}`,
  index: (collection: string, definition: IndexDefinition) => {
    const { fields, unique, sparse, collation, where, kind, weights } = definition;
    const { language, dims, metric, storage } = definition;
    const marks = [
      kind === 'search' && `search-${language ?? 'none'}`,
      kind === 'vector' && `vector-${dims}-${metric ?? 'cosine'}`,
      storage === 'int8' && storage,
      weights && hashMark('weights', weightsText(definition)),
      unique && 'unique',
      sparse && 'sparse',
      collation,
      where && hashMark('where', whereText(definition)),
    ];
    return [`index:${collection}:${fields.join(',')}`, ...marks.filter(Boolean)].join(':');
  },
  dropped: (collection: string) => `dropped:${collection}`,
  rename: (collection: string) => `rename:${collection}`,
};

function hashMark(name: string, text: string): string {
  const { high, low } = hashText(text);
  return `${name}-${high.toString(16)}${low.toString(16)}`;
}

/** A definition as it is stored: nothing of the caller's objects, nothing that is not set. */
function storedDefinition(definition: IndexDefinition): IndexDefinition {
  const { fields, unique = false, sparse = false, collation, where } = definition;
  const { kind, language, weights, dims, metric, storage } = definition;
  return {
    fields: [...fields],
    unique,
    sparse,
    ...(collation === undefined ? {} : { collation }),
    ...(kind === undefined ? {} : { kind }),
    ...(language === undefined ? {} : { language }),
    ...(dims === undefined ? {} : { dims }),
    ...(metric === undefined ? {} : { metric }),
    ...(storage === undefined ? {} : { storage }),
    ...(weights === undefined ? {} : { weights: { ...weights } }),
    ...(where === undefined ? {} : { where: toDocument(plainFilter(where, 'where'), 'where') }),
  };
}

/** Stores a declaration. Inside a job. */
export function putDeclaration(
  core: Core,
  commit: CommitBuilder,
  key: string,
  data: Declaration,
): void {
  const system = core.collectionNow(systemCollection);
  const before = declarationOf(core, key);
  const id = before?.id ?? core.random.ulid(commit.now);
  const document = encodeDocument(core, data as unknown as JsonObject);
  commit.store(system, id, before, document, { key, expiresAt: 0 });
}

/** Removes a declaration; false: there was none. Inside a job. */
export function removeDeclaration(core: Core, commit: CommitBuilder, key: string): boolean {
  const before = declarationOf(core, key);
  if (!before) return false;
  commit.remove(core.catalog.system!, before);
  return true;
}

/** The record of a declaration. Inside a job. */
function declarationOf(core: Core, key: string): RecordImage | undefined {
  const { system } = core.catalog;
  if (!system) return undefined;
  const view = core.view();
  const id = view.idOfKey(system.id, key);
  return id === undefined ? undefined : view.record(system.id, id);
}

/** Loads the declarations of the system collection into the catalog. Inside a job. */
export function loadDeclarations(core: Core): void {
  const { system } = core.catalog;
  if (!system) return;
  const schemas = new Map<CollectionInfo, CollectionSchema | undefined>();
  const indexes = new Map<string, IndexDefinition[]>();
  const dropped = new Set<CollectionInfo>();
  for (const record of core.view().scan(system.id, {}, () => true)) {
    const declared = record.data as unknown as Declaration;
    const collection = core.collectionNow(declared.collection);
    if (declared.schema !== undefined) {
      schemas.set(collection, schemaOf(core, collection, declared, record.updatedAt));
    }
    if (declared.index) {
      // Refuses a kind of a newer version: a node that cannot maintain it neither opens nor follows.
      compileIndex(declared.index);
      indexes.set(collection.name, [...(indexes.get(collection.name) ?? []), declared.index]);
    }
    if (declared.dropped) dropped.add(collection);
  }
  for (const collection of core.catalog.all()) {
    collection.schema = schemas.get(collection);
    collection.isDropped = dropped.has(collection);
  }
  core.declaredIndexes = indexes;
  core.onDeclarations();
}

/** Commits a change of declarations and loads them. Inside a job. Returns the commit. */
export function commitDeclarations(core: Core, change: (commit: CommitBuilder) => void): number {
  const commit = new CommitBuilder(core);
  change(commit);
  if (commit.isEmpty) return 0;
  commit.finish();
  loadDeclarations(core);
  return commit.seq;
}

function schemaOf(
  core: Core,
  collection: CollectionInfo,
  { schema: text = '', validate = 'strict' }: Declaration,
  updatedAt: number,
): CollectionSchema | undefined {
  const known = collection.schema;
  if (known?.updatedAt === updatedAt && known.text === text && known.validate === validate) {
    return known;
  }
  try {
    const check = compileSchema(JSON.parse(text) as JsonObject, true);
    return { text, validate, updatedAt, check, violationCount: 0, loggedAt: -Infinity };
  } catch (error) {
    // It was valid when it was set, perhaps by another version. Reads must still work.
    core.log.error({ collection: collection.name, err: error }, 'schema failed to load');
    return undefined;
  }
}

export interface DroppedCollection {
  /** Number of deleted records. */
  deleted: number;
  seq: number;
}

export interface RenamedCollection {
  /** Number of moved records. */
  moved: number;
  seq: number;
}

const maxCommitRecords = 1_000;
const maxCommitBytes = 4 * 2 ** 20;

/** Drops and renames collections, creates and drops indexes. */
export class CatalogChanges {
  /** Indexes declared in the settings. They can only be changed there. */
  settings: DeclaredIndexes = new Map();

  constructor(
    private readonly core: Core,
    /** Resolves when the indexes in memory match the declarations. */
    private readonly indexesDeclared: () => Promise<void>,
  ) {}

  /** The collections that exist, without the system collection. */
  collections(): CollectionInfo[] {
    const all = this.core.catalog.all();
    if (!all.some(({ isDropped }) => isDropped)) return all;
    const view = this.core.snapshot();
    try {
      return all.filter(({ id, isDropped }) => {
        if (!isDropped) return true;
        for (const _record of view.scan(id, {}, () => true)) return true;
        return false;
      });
    } finally {
      view.done();
    }
  }

  /** Deletes the records in commits of up to 1,000, then the schema and the indexes. */
  async drop(name: string): Promise<DroppedCollection> {
    const collection = this.#existing(name);
    let deleted = 0;
    for (;;) {
      const { count, seq } = await this.#step(
        collection,
        (commit, record) => {
          commit.remove(collection, record);
        },
        (commit) => this.#forget(commit, name),
      );
      deleted += count;
      if (seq > 0) return { deleted, seq };
    }
  }

  /**
   * Moves the records in commits of up to 1,000, with their ids, keys, revisions and times, then
   * the schema and the indexes. After a failure it can be repeated.
   */
  async rename(name: string, newName: string): Promise<RenamedCollection> {
    checkCollectionName(newName);
    const collection = this.#existing(name);
    this.#checkNotDeclared(newName);
    const target = await this.core.writer.submit(() => this.#beginRename(name, newName));
    let moved = 0;
    for (;;) {
      const { count, seq } = await this.#step(
        collection,
        (commit, record) => {
          move(this.core, commit, collection, target, record);
        },
        (commit) => this.#finishRename(commit, collection, newName),
      );
      moved += count;
      if (seq > 0) return { moved, seq };
    }
  }

  /** The commit is 0 when the index exists already. */
  async createIndex(
    name: string,
    declared: DeclaredIndex,
  ): Promise<{ index: IndexInfo; seq: number }> {
    checkCollectionName(name);
    const definition = definitionOf(declared);
    compileIndex(definition);
    const index = storedDefinition(definition);
    const key = keyOf.index(name, index);
    checkKey(key);
    const known = this.#indexOf(name, index);
    if (known) return { index: known, seq: 0 };
    const seq = await this.core.writer.submit(() =>
      commitDeclarations(this.core, (commit) => {
        this.core.collectionNow(name);
        putDeclaration(this.core, commit, key, { collection: name, index });
        removeDeclaration(this.core, commit, keyOf.dropped(name));
      }),
    );
    await this.indexesDeclared();
    const made = this.#indexOf(name, index);
    if (!made) throw refuse('NOT_READY', 'The index was dropped again meanwhile.');
    return { index: made, seq };
  }

  /** `indexName` is the fields, separated by commas. Returns the commit. */
  async dropIndex(name: string, indexName: string): Promise<number> {
    checkCollectionName(name);
    const isNamed = (each: IndexDefinition) => nameOfIndex(each) === indexName;
    const declared = (this.core.declaredIndexes.get(name) ?? []).filter(isNamed);
    if (declared.length === 0) {
      if (this.settings.get(name)?.some(isNamed)) throw inSettings(name, 'This index');
      const names = (this.core.catalog.find(name)?.indexes ?? []).map((each) => each.compiled.name);
      const known = names.length > 0 ? ` It has: ${[...new Set(names)].join('; ')}.` : '';
      throw refuse('INDEX_NOT_FOUND', `"${name}" has no index "${indexName}".${known}`, {
        collection: name,
        index: indexName,
      });
    }
    const seq = await this.core.writer.submit(() =>
      commitDeclarations(this.core, (commit) => {
        for (const each of declared) removeDeclaration(this.core, commit, keyOf.index(name, each));
      }),
    );
    await this.indexesDeclared();
    return seq;
  }

  #indexOf(name: string, definition: IndexDefinition): IndexInfo | undefined {
    const indexes = this.core.catalog.find(name)?.indexes ?? [];
    return indexes.find((index) => sameDefinition(index.definition, definition));
  }

  #existing(name: string): CollectionInfo {
    checkCollectionName(name);
    const found = this.collections().find((each) => each.name === name);
    if (!found) {
      throw refuse('COLLECTION_NOT_FOUND', `Collection "${name}" does not exist.`, {
        collection: name,
      });
    }
    this.#checkNotDeclared(name);
    return found;
  }

  #checkNotDeclared(name: string): void {
    if (this.settings.has(name)) throw inSettings(name, `Collection "${name}"`);
  }

  /** One commit: changes some records, or calls `finish` when there are none left. */
  async #step(
    collection: CollectionInfo,
    change: (commit: CommitBuilder, record: RecordImage) => void,
    finish: (commit: CommitBuilder) => void,
  ): Promise<{ count: number; seq: number }> {
    return this.core.writer.submit(() => {
      const records = this.#firstRecords(collection);
      if (records.length === 0) {
        return { count: 0, seq: commitDeclarations(this.core, finish) };
      }
      const commit = new CommitBuilder(this.core);
      for (const record of records) change(commit, record);
      commit.finish();
      return { count: records.length, seq: 0 };
    });
  }

  #firstRecords(collection: CollectionInfo): RecordImage[] {
    const records: RecordImage[] = [];
    let bytes = 0;
    for (const record of this.core.view().scan(collection.id, {}, () => true)) {
      records.push(record.keep());
      bytes += record.end;
      if (records.length >= maxCommitRecords || bytes >= maxCommitBytes) break;
    }
    return records;
  }

  /** Stores the rename, so that it can be repeated after a failure. */
  #beginRename(name: string, newName: string): CollectionInfo {
    const { core } = this;
    const begun = declarationOf(core, keyOf.rename(name));
    const isContinued = begun?.data['renamedTo'] === newName;
    if (!isContinued && this.collections().some((each) => each.name === newName)) {
      throw refuse('COLLECTION_EXISTS', `Collection "${newName}" exists already.`, {
        collection: newName,
      });
    }
    if (!isContinued) {
      commitDeclarations(core, (commit) => {
        removeDeclaration(core, commit, keyOf.dropped(newName));
        putDeclaration(core, commit, keyOf.rename(name), { collection: name, renamedTo: newName });
      });
    }
    return core.collectionNow(newName);
  }

  #finishRename(commit: CommitBuilder, { name, schema }: CollectionInfo, newName: string): void {
    const { core } = this;
    if (schema) {
      const { text, validate } = schema;
      const declaration = { collection: newName, schema: text, validate };
      putDeclaration(core, commit, keyOf.schema(newName), declaration);
    }
    for (const index of core.declaredIndexes.get(name) ?? []) {
      putDeclaration(core, commit, keyOf.index(newName, index), { collection: newName, index });
    }
    removeDeclaration(core, commit, keyOf.rename(name));
    this.#forget(commit, name);
  }

  /** Removes the declarations of a collection that is empty and hides it. */
  #forget(commit: CommitBuilder, name: string): void {
    const { core } = this;
    removeDeclaration(core, commit, keyOf.schema(name));
    for (const index of core.declaredIndexes.get(name) ?? []) {
      removeDeclaration(core, commit, keyOf.index(name, index));
    }
    putDeclaration(core, commit, keyOf.dropped(name), { collection: name, dropped: true });
  }
}

/** Refuses when the new name was used meanwhile. */
function move(
  core: Core,
  commit: CommitBuilder,
  from: CollectionInfo,
  to: CollectionInfo,
  record: RecordImage,
): void {
  const { id, key, rev, createdAt, updatedAt, expiresAt } = record;
  const view = core.view();
  const names = { collection: to.name };
  if (key && view.idOfKey(to.id, key) !== undefined) {
    throw refuse('DUPLICATE_KEY', `"${to.name}" has a record with the key "${key}" already.`, {
      ...names,
      key,
    });
  }
  if (view.record(to.id, id)) {
    throw refuse('DUPLICATE_ID', `"${to.name}" has a record with the id ${id} already.`, {
      ...names,
      id,
    });
  }
  const document = encodeDocument(core, record.data);
  commit.remove(from, record);
  commit.storeExactly(to, id, undefined, document, { key, rev, createdAt, updatedAt, expiresAt });
}

function inSettings(collection: string, what: string) {
  return refuse(
    'DECLARED_IN_SETTINGS',
    `${what} is declared in the settings of the server. Change them and restart the server.`,
    { collection },
  );
}
