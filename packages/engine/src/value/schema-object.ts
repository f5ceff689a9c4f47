import { refuse } from './refusal.js';

/** Refuses BAD_SCHEMA, in process and in the client, which cannot send anything else. */
export function checkSchemaObject(schema: unknown): asserts schema is object {
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) return;
  throw refuse('BAD_SCHEMA', 'The schema cannot be used: it must be a JSON object.');
}
