/**
 * The database's contract: messages and service (from db.proto), its REST routes, and the closed
 * list of reasons for its errors. Browser-safe.
 */
import type { components } from './generated/db.rest.js';

export * from './db-reasons.js';
export * from './generated/db.routes.js';
export * from './generated/millrace/db/v1/db_pb.js';

/** A schema of the REST API by its name in the document: `DbSchema<'IndexAdvice'>`. */
export type DbSchema<Name extends keyof components['schemas']> = components['schemas'][Name];
