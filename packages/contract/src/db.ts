/**
 * The database's contract: messages and service (from db.proto), its REST routes, and the closed
 * list of reasons for its errors. Browser-safe.
 */
export * from './db-reasons.js';
export * from './generated/db.routes.js';
export * from './generated/millrace/db/v1/db_pb.js';
