import { Refusal, UsageError } from '@millrace/kit/errors';
import type { SchemaInfo, SetSchemaResult } from '@millrace/db';
import { asTyped, programName } from '../base/command-name.js';
import { renderTable } from '../render/table.js';
import type { Terminal } from '../base/terminal.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { isObject, parseJson } from '../base/arguments.js';
import { counted } from '@millrace/contract/lists';

interface SetSchemaFlags extends ConnectionFlags {
  validate: 'strict' | 'warn';
  force?: boolean;
}

/** The schema in a file. What is wrong with the file is a failure, not a usage error. */
async function readSchema(file: string, terminal: Terminal): Promise<object> {
  const isStdin = file === '-';
  const text = isStdin
    ? await (await import('node:stream/consumers')).text(terminal.in.stream)
    : await (await import('node:fs/promises')).readFile(file, 'utf8');
  const place = isStdin ? 'stdin' : file;
  try {
    const schema = parseJson(text, place);
    if (isObject(schema)) return schema;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new Refusal('BAD_SCHEMA', error.message, { cause: error });
  }
  throw new Refusal('BAD_SCHEMA', `${place} must have a JSON object, such as {"type":"object"}.`);
}

export async function setSchema(
  collection: string,
  file: string,
  { validate, force = false }: SetSchemaFlags,
  { connected, terminal, exitWith }: ConnectedTools,
): Promise<void> {
  const schema = await readSchema(file, terminal);
  const database = await connected();
  const result = await database.schemas.set(collection, schema, { validate, force });
  const { out, err, json } = terminal;
  if (!result.applied) exitWith(1);
  if (json) {
    out.write(`${JSON.stringify(result, null, 2)}\n`);
    return;
  }
  const { checked, violating, applied } = result;
  if (violating > 0) (applied ? out : err).write(violationsText(result, terminal));
  const records = counted(checked, 'record');
  if (!applied) {
    err.write(
      `${programName()}: ${violating} of ${records} of "${collection}" do not match, so nothing was ` +
        'changed. Fix them, or add --force to set the schema anyway.\n',
    );
    return;
  }
  const found = violating > 0 ? `; ${violating} do not match` : '';
  out.write(`Schema of "${collection}" set, validate: ${validate}. Checked ${records}${found}.\n`);
}

function violationsText({ violations, violating }: SetSchemaResult, { out }: Terminal): string {
  const rows = violations.map(({ id, key, path, message }) => [key || id, path, message]);
  const rest = violating - violations.length;
  return `${renderTable(['RECORD', 'FIELD', 'PROBLEM'], rows, out)}${rest > 0 ? `and ${rest} more\n` : ''}`;
}

export async function showSchema(
  collection: string,
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const database = await connected();
  const found = await database.schemas.get(collection);
  if (!found) {
    throw new Refusal(
      'SCHEMA_NOT_FOUND',
      `"${collection}" has no schema. Set one with: ctl db schema set ${collection} FILE`,
    );
  }
  const shown = terminal.json ? { schema: schemaJson(found) } : found.schema;
  terminal.out.write(`${JSON.stringify(shown, null, 2)}\n`);
}

export async function removeSchema(
  collection: string,
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const database = await connected();
  const seq = await database.schemas.remove(collection);
  terminal.showLine({ seq }, `Schema of "${collection}" removed.\n`);
}

export async function listSchemas(_flags: object, { connected, terminal }: ConnectedTools) {
  const schemas = await (await connected()).schemas.list();
  const rows = schemas.map((each) => [
    each.collection,
    each.validate,
    each.violationCount,
    each.updatedAt.toISOString(),
  ]);
  terminal.show({ schemas: schemas.map(schemaJson) }, (out) =>
    schemas.length === 0
      ? asTyped('No schemas. Set one with: ctl db schema set COLLECTION FILE\n')
      : renderTable(['COLLECTION', 'VALIDATE', 'VIOLATIONS', 'UPDATED'], rows, out),
  );
}

/** As the REST API shows it. */
function schemaJson({ collection, schema, validate, updatedAt, violationCount }: SchemaInfo) {
  return {
    collection,
    schema,
    validate,
    updated_at: updatedAt.toISOString(),
    violation_count: violationCount,
  };
}
