import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { Database, dbGrpcOnlyFields, dbReasons, dbRoutes } from './db.js';
import { openApiDocument, openApiYaml } from './documents.js';

interface Media {
  schema: object;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}
interface Operation {
  operationId: string;
  parameters?: { $ref?: string; name?: string; in?: string }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { $ref?: string; content?: Record<string, Media> }>;
  'x-codes'?: string[];
  'x-min-access'?: string;
}

const document = openApiDocument('db');
const paths: Record<string, Record<string, Operation>> = JSON.parse(JSON.stringify(document.paths));
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([verb, operation]) => ({ path, verb, operation })),
);
const byId = new Map(operations.map((entry) => [entry.operation.operationId, entry]));

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ ...document, $id: 'db' });

/** Messages of what is wrong with a value; the schema's references point into the document. */
function faults(schema: object, value: unknown): string[] {
  const text = JSON.stringify(schema).replaceAll('"#/', '"db#/');
  const validate = ajv.compile(JSON.parse(text));
  validate(value);
  return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
}

function examplesOf(media: Media): unknown[] {
  const many = Object.values(media.examples ?? {}).map((example) => example.value);
  return media.example === undefined ? many : [media.example, ...many];
}

test('every method of the service is served, each binding under its own id', () => {
  expect(Database.methods).toHaveLength(33);
  const served = new Set<string>(dbRoutes.map((route) => route.rpc));
  expect(Database.methods.map((method) => method.name).filter((name) => !served.has(name))).toEqual(
    [],
  );
  expect(byId.size).toBe(operations.length);
});

test.each(dbRoutes)('$operationId is in the document as the route says', (route) => {
  const entry = byId.get(route.operationId);
  expect(entry?.path).toBe(route.path);
  expect(entry?.verb.toUpperCase()).toBe(route.method);
  expect(entry?.operation['x-min-access']).toBe(route.access);
  expect(Object.keys(entry?.operation.responses['200']?.content ?? {})).toEqual(route.media);
});

test('no two routes answer to the same request', () => {
  const shapes = dbRoutes.map((route) => `${route.method} ${route.path.replace(/\{\w+\}/g, '{}')}`);
  expect(new Set(shapes).size).toBe(shapes.length);
});

test.each(operations)('$verb $path has examples that fit its schemas', ({ operation }) => {
  const contents = [operation.requestBody?.content, operation.responses['200']?.content];
  for (const media of contents.flatMap((content) => Object.values(content ?? {}))) {
    const examples = examplesOf(media);
    expect(examples).not.toEqual([]);
    for (const example of examples) expect(faults(media.schema, example)).toEqual([]);
  }
});

test('the example of every error fits the schema', () => {
  const responses: Operation['responses'] = JSON.parse(
    JSON.stringify(document.components['responses']),
  );
  const media = Object.values(responses).flatMap((one) => Object.values(one.content ?? {}));
  const shown = media.flatMap((one) => Object.keys(one.examples ?? {}));
  expect(Object.keys(dbReasons).filter((reason) => !shown.includes(reason))).toEqual([
    'NO_SUCH_METHOD',
  ]);
  for (const one of media) {
    for (const example of examplesOf(one)) expect(faults(one.schema, example)).toEqual([]);
  }
});

test.each(operations.filter(({ operation }) => operation['x-codes']))(
  '$verb $path documents the status of each of its reasons',
  ({ operation }) => {
    const table: Record<string, { status: number }> = dbReasons;
    const codes = operation['x-codes'] ?? [];
    const statuses = new Set(codes.map((code) => String(table[code]?.status)));
    expect(Object.keys(operation.responses).toSorted()).toEqual(['200', ...statuses].toSorted());
  },
);

test('what travels on gRPC alone is not in the document', () => {
  expect(dbGrpcOnlyFields).toMatchObject({
    Record: ['data_json', 'highlights_json'],
    InsertRequest: ['data_json', 'encoding'],
  });
  const names = new Set(Object.values(dbGrpcOnlyFields).flat());
  const properties = Object.values(document.components.schemas).flatMap((schema) =>
    Object.keys(schema['properties'] ?? {}),
  );
  expect(properties.filter((name) => names.has(name))).toEqual([]);
  expect(dbRoutes.flatMap((route) => route.queryFields).filter((name) => names.has(name))).toEqual(
    [],
  );
});

test('a filter is checked as it is nested', () => {
  const body = { $ref: '#/components/schemas/FindBody' };
  const deep = { not: { or: [{ field: 'age', op: 'gt', value: 18 }, {}] } };
  expect(faults(body, { filter: deep })).toEqual([]);
  expect(faults(body, { filter: { and: [{ field: 'age', op: 'near', value: 1 }] } })).not.toEqual(
    [],
  );
});

test('an enum may be sent short or long', () => {
  const body = { $ref: '#/components/schemas/UpsertBody' };
  for (const mode of ['MERGE', 'UPDATE_MODE_MERGE']) {
    expect(faults(body, { data: {}, mode })).toEqual([]);
  }
  expect(faults(body, { data: {}, mode: 'merge' })).not.toEqual([]);
});

test('the YAML and the JSON say the same', () => {
  expect(parse(openApiYaml('db'))).toEqual(document);
});
