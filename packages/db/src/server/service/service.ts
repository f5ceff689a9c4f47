import { adminMethods } from './admin.js';
import { aggregateMethod, distinctMethod, findMethod } from './queries.js';
import { bulkMethods } from './bulk.js';
import type { Service } from './call.js';
import { catalogMethods, schemaMethods } from './catalog.js';
import type { ServiceParts } from './parts.js';
import { readMethods } from './reads.js';
import { TransactionRegistry, writeMethods } from './writes.js';
import { watchMethod } from './watch.js';

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
    Distinct: distinctMethod(parts, transactions),
    Watch: watchMethod(parts),
  };
}
