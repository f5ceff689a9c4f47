import { Collection } from './collection.js';
import { checkCollectionName } from '../value/documents.js';
import type { Transaction } from '../write/transactions.js';

/** A transaction from which collections can be had: all their calls belong to it. */
export type DatabaseTransaction = Transaction & TransactionCollections;

interface TransactionCollections {
  collection<T extends object, In extends object>(of: Collection<T, In>): Collection<T, In>;
  collection<T extends object = Record<string, unknown>>(name: string): Collection<T>;
}

type Parts = ConstructorParameters<typeof Collection>[0];

export function withCollections(database: Parts, transaction: Transaction): DatabaseTransaction {
  const collection = (of: Collection<object> | string) => {
    if (typeof of !== 'string') return of.within(transaction, database);
    checkCollectionName(of);
    return new Collection(database, of, { transaction });
  };
  return Object.assign(transaction, { collection } as TransactionCollections);
}
