import { openApiDocument } from '@millrace/contract/documents';
import { expect, test } from 'vitest';
import { newScene } from './delivery.test-support.js';

interface Parameter {
  name: string;
  required?: boolean;
  schema: Schema;
}

interface Schema {
  $ref?: string;
  type?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  format?: string;
  const?: string;
}

const document = openApiDocument('queue');

function resolve(schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : resolve(document.components.schemas[name]!);
}

function documentedHeaders(): Parameter[] {
  const webhooks = document['webhooks'] as Record<string, { post: { parameters: Parameter[] } }>;
  return webhooks['executeTask']!.post.parameters;
}

function expectToFit(value: string, { name, schema }: Parameter): void {
  const { pattern, type, minimum, minLength = 0, maxLength = 1e9, ...rest } = resolve(schema);
  if (pattern !== undefined) expect(value, name).toMatch(new RegExp(pattern));
  if (type === 'integer') {
    expect(value, name).toMatch(/^\d+$/);
    expect(Number(value), name).toBeGreaterThanOrEqual(minimum ?? 0);
  }
  if (rest.format === 'date-time') expect(new Date(value).toISOString(), name).toBe(value);
  if (rest.const !== undefined) expect(value, name).toBe(rest.const);
  expect(value.length, name).toBeGreaterThanOrEqual(minLength);
  expect(value.length, name).toBeLessThanOrEqual(maxLength);
}

async function sentHeaders(isProbe: boolean): Promise<Readonly<Record<string, string>>> {
  const secret = `whsec_${Buffer.from('signing').toString('base64')}`;
  const { world, putQueue, submit, outbound, delivery } = await newScene({
    findSecret: () => secret,
  });
  const signing = { scheme: 'standard_webhooks' as const, secret_refs: ['key'] };
  const queue = await putQueue({ callback: { signing } });
  if (isProbe) await world.complete(delivery.probe(queue));
  else await submit();
  await world.settle();
  return outbound.requests[0]!.headers!;
}

test('a callback carries every header of the contract in its documented form, and no others', async () => {
  const headers = await sentHeaders(false);
  const documented = documentedHeaders().filter(
    ({ name }) => !['X-Queue-Probe', 'X-Queue-Dependencies'].includes(name),
  );
  expect(documented.length).toBeGreaterThan(10);
  for (const header of documented) {
    expect(Object.keys(headers)).toContain(header.name);
    expectToFit(headers[header.name]!, header);
  }
  const others = Object.keys(headers).filter(
    (name) => !documented.some((header) => header.name === name),
  );
  expect(others).toEqual(['Content-Type', 'User-Agent']);
});

test('a probe carries what the contract requires, its mark, and no lease token', async () => {
  const headers = await sentHeaders(true);
  for (const header of documentedHeaders()) {
    if (header.required || header.name === 'X-Queue-Probe') {
      expectToFit(headers[header.name]!, header);
    }
  }
  expect(headers).not.toHaveProperty('X-Queue-Lease-Token');
});
