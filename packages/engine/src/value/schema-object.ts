import { refuse } from './refusal.js';

/** Refuses BAD_SCHEMA for anything but an object; used in process and in the client. */
export function checkSchemaObject(schema: unknown): asserts schema is object {
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) return;
  throw refuse('BAD_SCHEMA', 'The schema cannot be used: it must be a JSON object.');
}
