import type { Database } from '../../engine/database.js';
import type { Transaction } from '../../engine/transactions.js';

/** Ids of the records that a transaction has written and not committed. */
export function ownIds(
  database: Database,
  transaction: Transaction,
  collection: string,
): { has(id: string): boolean } {
  const info = database.core.catalog.find(collection);
  return info ? transaction.overlay(info.id) : new Set<string>();
}
