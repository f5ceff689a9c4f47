import type { Database } from '@millrace/engine/api/database';
import type { Transaction } from '@millrace/engine/write/transactions';

/** Ids of the records that a transaction has written and not committed. */
export function ownIds(
  database: Database,
  transaction: Transaction,
  collection: string,
): { has(id: string): boolean } {
  const info = database.core.catalog.find(collection);
  return info ? transaction.overlay(info.id) : new Set<string>();
}
