import { sameDefinition, type CollectionInfo, type IndexInfo } from '../core/catalog.js';
import type { Core } from '../core/core.js';
import {
  commitDeclarations,
  declarationOf,
  keyOf,
  putDeclaration,
  removeDeclaration,
} from './declarations.js';
import { checkCollectionName, checkKey } from '../value/documents.js';
import type { DeclaredIndexes } from './index-build.js';
import { compileIndex, type IndexDefinition } from '../format/entries.js';
import { encodeDocument } from '../format/encoded-document.js';
import { CommitBuilder } from './mutations.js';
import type { RecordImage } from '../format/record.js';
import { refuse } from '../value/refusal.js';

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
    definition: IndexDefinition,
  ): Promise<{ index: IndexInfo; seq: number }> {
    checkCollectionName(name);
    const { fields, unique = false, sparse = false } = definition;
    compileIndex(definition);
    const index = { fields: [...fields], unique, sparse };
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
    const isNamed = ({ fields }: IndexDefinition) => fields.join(',') === indexName;
    const declared = (this.core.declaredIndexes.get(name) ?? []).filter(isNamed);
    if (declared.length === 0) {
      if (this.settings.get(name)?.some(isNamed)) throw inSettings(name, 'This index');
      throw refuse('INDEX_NOT_FOUND', `"${name}" has no index "${indexName}".`, {
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
    for (const { fields, unique = false, sparse = false } of core.declaredIndexes.get(name) ?? []) {
      const index = { fields: [...fields], unique, sparse };
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
