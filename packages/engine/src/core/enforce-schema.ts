import type { CollectionInfo } from './catalog.js';
import type { Core } from './core.js';
import type { JsonObject } from '../value/documents.js';
import { schemaViolation } from './schema.js';

const logIntervalMs = 1_000;

/** Refuses a document that the schema of its collection does not allow, or logs and counts it. */
export function enforceSchema(core: Core, collection: CollectionInfo, data: JsonObject): void {
  const { schema, name } = collection;
  const issue = schema?.check(data);
  if (!schema || !issue) return;
  schema.violationCount++;
  core.onSchemaViolation(schema.validate);
  if (schema.validate === 'strict') throw schemaViolation(name, [issue]);
  const now = core.clock.monotonic();
  if (now - schema.loggedAt < logIntervalMs) return;
  schema.loggedAt = now;
  const { violationCount } = schema;
  core.log.warn(
    { collection: name, path: issue.path.join('.'), problem: issue.message, violationCount },
    'schema violation',
  );
}
