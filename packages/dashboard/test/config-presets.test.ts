import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { configGroups } from '../src/pages/queues/config-draft.js';

test('presets: empty fields show the defaults of the contract', () => {
  const file = new URL('../../contract/src/generated/queue.openapi.json', import.meta.url);
  const api = JSON.parse(readFileSync(file, 'utf8'));
  const schemas: Record<string, { properties: Record<string, { default?: unknown }> }> = api
    .components.schemas as never;
  const parts: Record<string, string> = {
    callback: 'CallbackInput',
    retry: 'RetryInput',
    limits: 'LimitsInput',
    retention: 'RetentionInput',
    ordering: 'OrderingInput',
  };
  const numbers = configGroups
    .flatMap(({ fields }) => fields)
    .filter(({ kind }) => kind === 'number');
  for (const { path, preset } of numbers) {
    const [part = '', name = ''] = path.split('.');
    const found = schemas[parts[part]!]!.properties[name]!.default;
    expect({ path, preset }).toEqual({ path, preset: Number(found).toLocaleString('en') });
  }
  expect(numbers.length).toBeGreaterThan(8);
});
