import { adminMethods } from './admin.js';
import { aggregateMethod } from './aggregate.js';
import { bulkMethods } from './bulk.js';
import type { Service } from './call.js';
import { catalogMethods } from './catalog.js';
import { findMethod } from './find.js';
import type { ServiceParts } from './parts.js';
import { readMethods } from './reads.js';
import { schemaMethods } from './schemas.js';
import { TransactionRegistry } from './transactions.js';
import { watchMethod } from './watch.js';
import { writeMethods } from './writes.js';

/** The methods of the database, without network, authentication or limits. */
export function createService(parts: ServiceParts): Service {
  const transactions = new TransactionRegistry(parts);
  return {
    ...writeMethods(parts, transactions),
    ...bulkMethods(parts, transactions),
    ...readMethods(parts, transactions),
    ...transactions.methods,
    ...adminMethods(parts),
    ...catalogMethods(parts),
    ...schemaMethods(parts),
    Find: findMethod(parts, transactions),
    Aggregate: aggregateMethod(parts, transactions),
    Watch: watchMethod(parts),
  };
}
