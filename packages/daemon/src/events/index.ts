export { Events, type EventFlow } from './events.js';
export { watchLedger } from './ledger-watch.js';
export { Reports } from './reports.js';
