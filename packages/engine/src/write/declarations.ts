import { systemCollection, type CollectionInfo } from '../core/catalog.js';
import type { Core } from '../core/core.js';
import type { JsonObject } from '../value/documents.js';
import { compileSchema, type CollectionSchema, type ValidateMode } from '../core/json-schema.js';
import type { IndexDefinition } from '../format/entries.js';
import { encodeDocument } from '../format/encoded-document.js';
import { CommitBuilder } from './mutations.js';
import type { RecordImage } from '../format/record.js';

/** A record of the system collection. */
interface Declaration {
  collection: string;
  /** As JSON: a schema may be nested deeper than a document. */
  schema?: string;
  validate?: ValidateMode;
  index?: { fields: string[]; unique: boolean; sparse: boolean };
  /** The collection was dropped, or was renamed. */
  dropped?: true;
  /** The collection is being renamed to this. */
  renamedTo?: string;
}

/** Keys of the system collection. */
export const keyOf = {
  schema: (collection: string) => `schema:${collection}`,
  index: (collection: string, { fields, unique, sparse }: IndexDefinition) =>
    `index:${collection}:${fields.join(',')}${unique ? ':unique' : ''}${sparse ? ':sparse' : ''}`,
  dropped: (collection: string) => `dropped:${collection}`,
  rename: (collection: string) => `rename:${collection}`,
};

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
export function declarationOf(core: Core, key: string): RecordImage | undefined {
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
