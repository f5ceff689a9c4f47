import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';

type Json = Record<string, unknown>;

interface Operation {
  id: string;
  route: string;
  node: Json;
}

interface Sample {
  pointer: string;
  schema: string;
  value: unknown;
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

// The children of these keys bear names of the author's choice, so that a field called
// `default` or `examples` is not taken for the keyword.
const nameMaps = new Set([
  'paths',
  'webhooks',
  'schemas',
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'parameters',
  'headers',
  'responses',
  'requestBodies',
  'examples',
  'content',
  'x-route-responses',
]);
// Their messages are defined by another protocol, whose shapes are not ours to close.
const foreign = new Set([
  'postMcp',
  'callQueueServer',
  'putToQueueServer',
  'patchQueueServer',
  'callDatabase',
]);
const plainValues = new Set(['value', 'example', 'default', 'const', 'enum']);

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function child(node: Json, key: string): Json {
  const value = node[key] ?? {};
  if (!isJson(value)) throw new Error(`${key} must be an object`);
  return value;
}

function children(node: Json, key: string): [string, Json][] {
  const map = child(node, key);
  return Object.keys(map).map((name) => [name, child(map, name)]);
}

function list(node: Json, key: string): string[] {
  const value = node[key] ?? [];
  if (!Array.isArray(value)) throw new Error(`${key} must be an array`);
  return value.map(String);
}

function step(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

class Document {
  readonly root: Json;
  readonly operations: Operation[] = [];
  readonly codes: Json;

  constructor(file: string) {
    const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
    const root: unknown = parse(text);
    if (!isJson(root)) throw new Error(`${file} is not an object`);
    this.root = root;
    this.codes = child(root, 'x-error-codes');
    for (const [path, item] of children(root, 'paths')) {
      for (const method of methods.filter((name) => name in item)) {
        const node = child(item, method);
        const id = String(node['operationId']);
        this.operations.push({ id, route: `${method.toUpperCase()} ${path}`, node });
      }
    }
  }

  resolve(node: unknown): Json {
    if (!isJson(node)) throw new Error('Only an object can be resolved');
    if (typeof node['$ref'] !== 'string') return node;
    let target: unknown = this.root;
    for (const part of node['$ref'].split('/').slice(1)) {
      const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      target = isJson(target) ? target[key] : undefined;
    }
    if (target === undefined) throw new Error(`${node['$ref']} leads nowhere`);
    return this.resolve(target);
  }

  /** Every node that is a keyword's value, not a map of names, with its JSON pointer. */
  *nodes(node: unknown = this.root, pointer = '', isMap = false): Generator<[string, Json]> {
    if (Array.isArray(node)) {
      for (const [index, item] of node.entries()) yield* this.nodes(item, step(pointer, index));
    }
    if (!isJson(node)) return;
    if (!isMap) yield [pointer, node];
    for (const [key, value] of Object.entries(node)) {
      const skipped = plainValues.has(key) || (key.startsWith('x-') && !nameMaps.has(key));
      if (!isMap && skipped) continue;
      yield* this.nodes(value, step(pointer, key), !isMap && nameMaps.has(key));
    }
  }

  /** Every example and default of the document beside the schema that it must match. */
  *samples(): Generator<Sample> {
    for (const [pointer, node] of this.nodes()) {
      const schema = 'schema' in node ? step(pointer, 'schema') : pointer;
      if ('example' in node) yield { pointer, schema, value: node['example'] };
      if ('default' in node) yield { pointer, schema: pointer, value: node['default'] };
      const examples = node['examples'] ?? [];
      if (Array.isArray(examples)) {
        for (const value of examples) yield { pointer, schema: pointer, value };
      } else if ('schema' in node) {
        for (const [name, example] of Object.entries(child(node, 'examples'))) {
          const value = this.resolve(example)['value'];
          yield { pointer: step(step(pointer, 'examples'), name), schema, value };
        }
      }
    }
  }

  /** The problem documents shown under one response, by the response's status. */
  problems(responses: Json): { status: string; body: Json }[] {
    return Object.entries(responses).flatMap(([status, response]) => {
      const media = child(child(this.resolve(response), 'content'), 'application/problem+json');
      const examples = Object.values(child(media, 'examples'));
      const bodies = examples.map((each) => child(this.resolve(each), 'value'));
      if ('example' in media) bodies.push(child(media, 'example'));
      return bodies.map((body) => ({ status, body }));
    });
  }

  /** The parameters of an operation; its own take the place of the path's. */
  parameters(operation: Json): Json[] {
    const item = Object.values(child(this.root, 'paths')).find(
      (each) => isJson(each) && Object.values(each).includes(operation),
    );
    const both = [item, operation].flatMap((node) => (isJson(node) ? node['parameters'] : []));
    const found = both.filter(isJson).map((each) => this.resolve(each));
    return [...new Map(found.map((each) => [[each['in'], each['name']].join(' '), each])).values()];
  }

  /** The object schemas that a body can have, through references, arrays and alternatives. */
  objects(schema: unknown): Json[] {
    const node = this.resolve(schema);
    const choices = [node['oneOf'], node['anyOf']].flat().filter(isJson);
    const named = choices.filter((choice) => '$ref' in choice);
    if (named.length > 0) return named.flatMap((choice) => this.objects(choice));
    if (isJson(node['items'])) return this.objects(node['items']);
    return node['type'] === 'object' ? [node] : [];
  }
}

function validator(root: Json): (schema: string, value: unknown) => string {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajvFormats.default(ajv);
  ajv.addSchema(root, 'document.json');
  return (schema, value) => {
    const fragment = schema.split('/').map(encodeURIComponent).join('/');
    const check = ajv.compile({ $ref: `document.json#${fragment}` });
    return check(value) ? '' : ajv.errorsText(check.errors);
  };
}

describe.each(['queue.openapi.yaml', 'daemon.openapi.yaml'])('%s', (file) => {
  let document: Document;
  let operations: Operation[];
  let codes: Json;

  beforeAll(() => {
    document = new Document(file);
    ({ operations, codes } = document);
  });

  test('every reference leads somewhere', () => {
    for (const [, node] of document.nodes()) expect(() => document.resolve(node)).not.toThrow();
  });

  test('every operation has its own camelCase name, a summary, a known tag and its codes', () => {
    const tags = [document.root['tags']].flat().map((tag) => isJson(tag) && tag['name']);
    for (const { id, route, node } of operations) {
      expect(id, route).toMatch(/^[a-z]+([A-Z][a-z0-9]*)*$/);
      expect(node['summary'], route).toBeTypeOf('string');
      expect(list(node, 'tags').length, route).toBeGreaterThan(0);
      expect(tags, route).toEqual(expect.arrayContaining(list(node, 'tags')));
      expect(node, route).toHaveProperty('x-codes');
    }
    expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
    expect(operations.length).toBeGreaterThan(0);
  });

  test('every example and every default matches its schema', () => {
    const validate = validator(document.root);
    const samples = [...document.samples()];
    const wrong = samples.flatMap(({ pointer, schema, value }) => {
      const errors = validate(schema, value);
      return errors === '' ? [] : [`${pointer}: ${errors}`];
    });
    expect(wrong).toEqual([]);
    expect(samples.length).toBeGreaterThan(operations.length);
  });

  test('every body has a named schema and an example', () => {
    for (const { route, node } of operations) {
      const responses = Object.values(child(node, 'responses'));
      const bodies = 'requestBody' in node ? [node['requestBody'], ...responses] : responses;
      for (const body of bodies.map((each) => document.resolve(each))) {
        for (const [type, media] of children(body, 'content')) {
          expect(media, `${route} ${type}`).toHaveProperty('schema.$ref');
          const shown = 'example' in media ? 1 : children(media, 'examples').length;
          expect(shown, `${route} ${type}`).toBeGreaterThan(0);
        }
      }
    }
  });

  test('every request body refuses unknown keys', () => {
    const ours = operations.filter(({ id, node }) => 'requestBody' in node && !foreign.has(id));
    for (const { route, node } of ours) {
      const content = children(document.resolve(node['requestBody']), 'content');
      // `*/*` is a payload of any kind, taken as bytes.
      for (const [type, media] of content.filter(([name]) => name !== '*/*')) {
        const objects = document.objects(media['schema']);
        expect(objects.length, `${route} ${type}`).toBeGreaterThan(0);
        for (const schema of objects) expect(schema['additionalProperties'], route).toBe(false);
      }
    }
  });

  test('every field is described', () => {
    for (const [pointer, node] of document.nodes()) {
      if (pointer.includes('/dependentSchemas/')) continue;
      for (const [name, property] of children(node, 'properties')) {
        const text = property['description'] ?? document.resolve(property)['description'];
        expect(text, `${pointer}/${name}`).toBeTypeOf('string');
      }
    }
  });

  test('the problem schema knows exactly the listed codes', () => {
    const problem = child(child(child(document.root, 'components'), 'schemas'), 'Problem');
    const code = document.resolve(child(child(problem, 'properties'), 'code'));
    expect(list(code, 'enum').toSorted()).toEqual(Object.keys(codes).toSorted());
  });

  test('every operation shows a problem for each of its codes, and for no other', () => {
    for (const { route, node } of operations) {
      const problems = document.problems(child(node, 'responses'));
      const shown = new Set(problems.map(({ body }) => String(body['code'])));
      expect([...shown].toSorted(), route).toEqual(list(node, 'x-codes').toSorted());
    }
  });

  test('every problem has the type, status and title of its code', () => {
    const responses = [document.root, ...operations.map(({ node }) => node)].flatMap((node) => [
      child(node, 'responses'),
      child(node, 'x-route-responses'),
    ]);
    for (const { status, body } of responses.flatMap((each) => document.problems(each))) {
      const code = String(body['code']);
      const meaning = child(codes, code);
      const type = `urn:millrace:problem:${code.toLowerCase().replaceAll('_', '-')}`;
      expect(body, code).toMatchObject({
        status: meaning['status'],
        title: meaning['title'],
        type,
      });
      expect(status).toBe(String(meaning['status']));
    }
  });

  test('every listed code is answered somewhere, and every answered code is listed', () => {
    // `x-route-responses` answers requests that match no operation.
    const unrouted = document.problems(child(document.root, 'x-route-responses'));
    const answered = new Set([
      ...unrouted.map(({ body }) => String(body['code'])),
      ...operations.flatMap(({ node }) => list(node, 'x-codes')),
    ]);
    expect([...answered].toSorted()).toEqual(Object.keys(codes).toSorted());
    for (const { route, node } of operations) {
      expect(Object.keys(codes), route).toEqual(expect.arrayContaining(list(node, 'x-item-codes')));
      for (const { 'x-invalid-code': code } of [node, ...document.parameters(node)]) {
        if (code !== undefined) expect(list(node, 'x-codes'), route).toContain(code);
      }
    }
  });
});

describe('the queue contract', () => {
  const document = new Document('queue.openapi.yaml');
  const schemas = '/components/schemas';
  const validate = validator(document.root);

  test('an operation requires a role exactly when it requires a token', () => {
    for (const { route, node } of document.operations) {
      const open = JSON.stringify(node['security']) === '[]';
      expect(open, route).toBe(!route.includes(' /v1/'));
      const role = open ? [undefined] : ['submitter', 'worker', 'operator', 'admin'];
      expect(role, route).toContain(node['x-min-role']);
      expect(node['x-grant-scope'] === undefined, route).toBe(open);
    }
  });

  test('every operation with a body limits its size and names the code of a bad one', () => {
    for (const { route, node } of document.operations) {
      expect('x-body-limit-bytes' in node, route).toBe('requestBody' in node);
      if ('requestBody' in node) expect(node, route).toHaveProperty('x-invalid-code');
    }
  });

  test('the config example of all defaults is what the defaults of the schema give', () => {
    const ajv = new Ajv2020({ strict: false, useDefaults: true });
    ajvFormats.default(ajv);
    ajv.addSchema(document.root, 'document.json');
    const example = document.resolve({ $ref: '#/components/examples/ConfigDefaults' });
    const { name, paused, version, created_at, updated_at, ...stored } = child(example, 'value');
    expect([name, paused, version, created_at, updated_at]).not.toContain(undefined);
    const config = { callback: { url: child(stored, 'callback')['url'] } };
    const fill = ajv.compile({ $ref: `document.json#${schemas}/QueueConfigInput` });
    expect(fill(config)).toBe(true);
    expect(config).toEqual(stored);
  });

  test.each([
    ['SubmitTaskRequest', { handler_ref: 'a', id: '7zzzzzzzzzzzzzzzzzzzzzzzzz' }],
    ['SubmitTaskRequest', { handler_ref: 'a', headers: { 'X-A': '', 'x~b': 'two words' } }],
    ['SubmitTaskRequest', { handler_ref: 'a', payload_content_type: 'text/plain; charset=utf-8' }],
    ['SubmitTaskRequest', { handler_ref: 'a'.repeat(256), delay_ms: 2_592_000_000 }],
    ['PurgeSelector', { ids: [] }],
    ['RedriveSelector', { filter: {}, rate_per_second: 0, dry_run: true }],
    ['CallbackAuth', { type: 'header', name: 'X-Api-Key', secret_ref: 'key' }],
    ['QueueConfigInput', { callback: { url: 'http://[localhost]/', signing: null } }],
  ])('%s takes %j', (schema, value) => {
    expect(validate(`${schemas}/${schema}`, value)).toBe('');
  });

  test.each([
    ['SubmitTaskRequest', {}],
    ['SubmitTaskRequest', { handler_ref: '' }],
    ['SubmitTaskRequest', { handler_ref: '-a' }],
    ['SubmitTaskRequest', { handler_ref: 'a'.repeat(257) }],
    ['SubmitTaskRequest', { handler_ref: 'a', id: '80000000000000000000000000' }],
    ['SubmitTaskRequest', { handler_ref: 'a', id: '0I000000000000000000000000' }],
    ['SubmitTaskRequest', { handler_ref: 'a', headers: { 'X-A': ' led by a space' } }],
    ['SubmitTaskRequest', { handler_ref: 'a', headers: { 'X-A': 'line\nbreak' } }],
    ['SubmitTaskRequest', { handler_ref: 'a', headers: { 'X A': '1' } }],
    ['SubmitTaskRequest', { handler_ref: 'a', headers: { 'X-A': 1 } }],
    ['SubmitTaskRequest', { handler_ref: 'a', payload_content_type: 'text/plain\r\nX-A: 1' }],
    ['SubmitTaskRequest', { handler_ref: 'a', payload_content_type: 'text' }],
    ['SubmitTaskRequest', { handler_ref: 'a', run_at: '2026-03-02T09:15:00Z', delay_ms: 1 }],
    ['SubmitTaskRequest', { handler_ref: 'a', run_at: 'tomorrow' }],
    ['SubmitTaskRequest', { handler_ref: 'a', delay_ms: 2_592_000_001 }],
    ['SubmitTaskRequest', { handler_ref: 'a', priority: 10 }],
    ['SubmitTaskRequest', { handler_ref: 'a', group_key: 'a\u0000' }],
    ['SubmitTaskRequest', { handler_ref: 'a', priorty: 1 }],
    ['PurgeSelector', {}],
    ['PurgeSelector', { ids: [], filter: {} }],
    ['PurgeSelector', { filter: { eror_type: 'TIMEOUT' } }],
    ['PurgeSelector', { filter: {}, rate_per_second: 1 }],
    ['RedriveSelector', { ids: Array.from({ length: 1001 }, () => '0'.repeat(26)) }],
    ['CallbackAuth', { type: 'bearer' }],
    ['CallbackAuth', { type: 'none', secret_ref: 'key' }],
    ['QueueConfigInput', { callback: {} }],
    ['QueueConfigInput', { callback: { url: 'not a url' } }],
    ['QueueConfigInput', { callback: { url: 'https://a/', timeout_ms: 99 } }],
    ['QueueConfigInput', { callback: { url: 'https://a/' }, retry: { initial_backoff_ms: 9 } }],
    ['QueueConfigInput', { callback: { url: 'https://a/' }, lease: { grace_ms: 99 } }],
    ['QueueConfigInput', { callback: { url: 'https://a/' }, limits: { max_payload_bytes: 9e6 } }],
  ])('%s refuses %j', (schema, value) => {
    expect(validate(`${schemas}/${schema}`, value)).not.toBe('');
  });
});
