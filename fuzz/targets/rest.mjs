import { openApiDocument } from '../../packages/contract/dist/documents.js';
import { operationsOf } from '../../packages/kit/dist/http/document.js';
import { parseJson, wellFormed } from '../../packages/kit/dist/http/body.js';
import { DocumentSchemas } from '../../packages/kit/dist/http/schemas.js';

/* Bodies of the REST interfaces. The first byte chooses the operation. */

const checks = ['queue', 'daemon'].flatMap((part) => {
  const document = openApiDocument(part);
  const schemas = new DocumentSchemas(document);
  const names = Object.keys(document.components.schemas).filter((name) => name.endsWith('Request'));
  return names.map((name) => schemas.named(name, { fillDefaults: true }));
});

export function prepare() {
  if (operationsOf(openApiDocument('queue')).length === 0) throw new Error('no operations');
  for (const check of checks) {
    check.prepare();
    check.faults({});
  }
}

class Malformed extends Error {}
export const isExpected = (error) => error instanceof Malformed;

export function run(input) {
  const check = checks[(input[0] ?? 0) % checks.length];
  const value = parsed(input.subarray(1));
  if (check.accepts(value)) return;
  const faults = check.faults(value);
  if (faults.length === 0) throw new Error('a body is refused without a reason');
}

function parsed(bytes) {
  try {
    return wellFormed(parseJson(bytes));
  } catch (error) {
    // Both throw plain errors, whose message becomes the detail of a 400.
    if (error.constructor === Error || error instanceof SyntaxError) throw new Malformed();
    throw error;
  }
}

export const dictionary = [
  '"handler":',
  '"payload":',
  '"name":',
  '"cron":',
  '"prompt":',
  '"tags":',
];
