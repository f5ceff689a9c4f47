import { systemCollection, type CollectionInfo } from './catalog.js';
import type { Core } from './core.js';
import type { JsonObject } from './documents.js';
import { compileSchema, type CollectionSchema, type ValidateMode } from './json-schema.js';
import { encodeDocument, type CommitBuilder } from './mutations.js';
import type { RecordImage } from './record.js';

/** A record of the system collection; its key is `schema:NAME`. */
export interface SchemaDeclaration {
  collection: string;
  /** As JSON: a schema may be nested deeper than a document. */
  schema: string;
  validate: ValidateMode;
}

export function schemaKey(collection: string): string {
  return `schema:${collection}`;
}

/** Stores a declaration. Inside a job. */
export function putDeclaration(core: Core, commit: CommitBuilder, key: string, data: object): void {
  const system = core.collectionNow(systemCollection);
  const before = declarationOf(core, key);
  const id = before?.id ?? core.random.ulid(commit.now);
  const document = encodeDocument(core, data as JsonObject);
  commit.store(system, id, before, document, { key, expiresAt: 0 });
}

/** Removes a declaration; false: there was none. Inside a job. */
export function removeDeclaration(core: Core, commit: CommitBuilder, key: string): boolean {
  const before = declarationOf(core, key);
  if (!before) return false;
  commit.remove(core.catalog.system!, before);
  return true;
}

function declarationOf(core: Core, key: string): RecordImage | undefined {
  const { system } = core.catalog;
  if (!system) return undefined;
  const view = core.view();
  const id = view.idOfKey(system.id, key);
  return id === undefined ? undefined : view.record(system.id, id);
}

/** Makes the catalog in memory what the system collection says. Inside a job. */
export function loadDeclarations(core: Core): void {
  const { system } = core.catalog;
  if (!system) return;
  const schemas = new Map<CollectionInfo, CollectionSchema | undefined>();
  for (const record of core.view().scan(system.id, {}, () => true)) {
    const { key, updatedAt } = record;
    if (!key.startsWith('schema:')) continue;
    const declared = record.data as unknown as SchemaDeclaration;
    const collection = core.collectionNow(declared.collection);
    schemas.set(collection, schemaOf(core, collection, declared, updatedAt));
  }
  for (const collection of core.catalog.all()) collection.schema = schemas.get(collection);
}

function schemaOf(
  core: Core,
  collection: CollectionInfo,
  { schema: text, validate }: SchemaDeclaration,
  updatedAt: number,
): CollectionSchema | undefined {
  const known = collection.schema;
  if (known?.updatedAt === updatedAt && known.text === text && known.validate === validate) {
    return known;
  }
  try {
    const check = compileSchema(JSON.parse(text) as JsonObject);
    return { text, validate, updatedAt, check, violationCount: 0, loggedAt: -Infinity };
  } catch (error) {
    // It was valid when it was set, perhaps by another version. Reads must go on.
    core.log.error({ collection: collection.name, err: error }, 'schema failed to load');
    return undefined;
  }
}
