/**
 * Usage of subscription backends, as `GET /api/v1/usage` answers it. A composition root calls
 * `createUsage` once, hands it the rows of the registry, and closes it at the end.
 */
export { createUsage, type Usage } from './usage.js';
