/**
 * The contract of Millrace as a whole. A package that needs one part imports that part:
 * `@millrace/contract/queue`, `/daemon`, `/db`, `/grpc` or `/documents`.
 */
export * as daemon from './daemon.js';
export * as db from './db.js';
export * as queue from './queue.js';
