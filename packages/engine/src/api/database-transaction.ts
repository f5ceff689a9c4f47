import { checkCollectionName } from '../value/documents.js';
import type { Transaction } from '../write/transactions.js';
import { EmbeddedCollection, type collectionPort } from './embedded-collection.js';

/** A transaction with collections whose calls all belong to it. */
export type DatabaseTransaction = Transaction & TransactionCollections;

interface TransactionCollections {
  collection<T extends object, In extends object>(
    of: EmbeddedCollection<T, In>,
  ): EmbeddedCollection<T, In>;
  collection<T extends object = Record<string, unknown>>(name: string): EmbeddedCollection<T>;
}

export function withCollections(
  port: ReturnType<typeof collectionPort>,
  transaction: Transaction,
): DatabaseTransaction {
  const collection = (of: EmbeddedCollection<object> | string) => {
    if (typeof of !== 'string') return of.within(transaction, port.owner);
    checkCollectionName(of);
    return new EmbeddedCollection(port, of, { transaction });
  };
  return Object.assign(transaction, { collection } as TransactionCollections);
}
