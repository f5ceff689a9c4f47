import { compileSchema } from '../../packages/engine/dist/core/json-schema.js';
import { checkSchemaObject } from '../../packages/engine/dist/value/documents.js';
import { Refusal } from '../../packages/kit/dist/base/errors.js';
import { parseJson } from '../../packages/kit/dist/http/body.js';

/* JSON Schemas and documents: the input is a list of a schema and documents for it. */

class Malformed extends Error {}
export const isExpected = (error) => error instanceof Malformed || error instanceof Refusal;

export function run(input) {
  const [schema, ...documents] = list(input);
  checkSchemaObject(schema);
  const check = compileSchema(schema);
  for (const document of documents) check(document);
}

function list(input) {
  let value;
  try {
    value = parseJson(input);
  } catch {
    throw new Malformed();
  }
  if (!Array.isArray(value)) throw new Malformed();
  return value;
}

export const dictionary = [
  '"type":"object"',
  '"properties":{',
  '"$ref":"#"',
  '"$defs":{',
  '"allOf":[',
  '"pattern":"',
  '"items":',
  '"required":[',
  '"$id":"',
  '"if":',
  '"not":{',
  '"enum":[',
  '"format":"date-time"',
  '"unevaluatedProperties":',
  '"dependentSchemas":',
  '"$dynamicRef":',
  '"uniqueItems":true',
];
