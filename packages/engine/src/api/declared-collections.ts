import { UsageError } from '@millrace/kit/errors';
import { checkCollectionName } from '../value/documents.js';
import { compileIndex, type IndexDefinition } from '../format/entries.js';

const maxTtlMs = 100 * 366 * 86_400_000;

/** Options of one collection for `open`. Collections not named here are created on first write. */
export interface CollectionOptions {
  indexes?: readonly IndexDefinition[];
  /** TTL of records written without one; 0 or absent: they never expire. */
  defaultTtlMs?: number;
}

export interface CollectionDeclarations {
  collections?: Readonly<Record<string, CollectionOptions>>;
  /** Indexes of any collections, beside those in `collections`. */
  indexes?: readonly (IndexDefinition & { collection: string })[];
}

/** The collections that the options of `open` declare, checked. */
export function declaredCollections({
  collections = {},
  indexes = [],
}: CollectionDeclarations): [string, CollectionOptions][] {
  const declared = new Map(Object.entries(collections));
  for (const { collection, ...definition } of indexes) {
    const options = declared.get(collection);
    const all = [...(options?.indexes ?? []), definition];
    declared.set(collection, { ...options, indexes: all });
  }
  for (const [name, options] of declared) checkDeclared(name, options);
  return [...declared];
}

function checkDeclared(name: string, { indexes = [], defaultTtlMs = 0 }: CollectionOptions): void {
  checkCollectionName(name);
  for (const definition of indexes) compileIndex(definition);
  if (defaultTtlMs >= 0 && defaultTtlMs <= maxTtlMs) return;
  throw new UsageError(
    `The default_ttl_ms of "${name}" is 0 (records never expire) to 100 years, ` +
      `not ${defaultTtlMs}.`,
  );
}
