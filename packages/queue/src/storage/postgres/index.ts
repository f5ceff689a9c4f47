export { openPostgresStore, type PostgresStoreOptions } from './open.js';
