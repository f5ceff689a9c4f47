import { adminMethods } from './admin.js';
import { aggregateMethod } from './aggregate.js';
import type { Service } from './call.js';
import { findMethod } from './find.js';
import type { ServiceParts } from './parts.js';
import { readMethods } from './reads.js';
import { TransactionDesk } from './transactions.js';
import { watchMethod } from './watch.js';
import { writeMethods } from './writes.js';

/** The methods of the database: no network, no keys, no limits. */
export function createService(parts: ServiceParts): Service {
  const desk = new TransactionDesk(parts);
  return {
    ...writeMethods(parts, desk),
    ...readMethods(parts, desk),
    ...desk.methods,
    ...adminMethods(parts),
    Find: findMethod(parts, desk),
    Aggregate: aggregateMethod(parts, desk),
    Watch: watchMethod(parts),
  };
}
