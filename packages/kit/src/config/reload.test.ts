import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { count } from './schema.js';
import { defineConfig, describeSetting } from './define.js';
import { loadConfig } from './load.js';

const definition = defineConfig({
  component: 'queue',
  unknownKeys: 'refuse',
  schema: z.object({
    storage: z.enum(['embedded', 'memory']).default('embedded').meta({ description: 'Store' }),
    savings: z.boolean().default(true),
    limits: z.object({ max: count().prefault('200k') }).prefault({}),
    note: z.string().optional(),
  }),
});

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-config-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test('withFileText: loads the same flags and variables with another text of the file', () => {
  writeFileSync(join(directory, 'queue.yaml'), 'savings: false\n');
  const loaded = loadConfig(definition, {
    environment: { MILLRACE_QUEUE_STORAGE: 'memory' },
    flags: { config: 'queue.yaml', note: 'from a flag' },
    cwd: directory,
  });
  expect(loaded.filePath).toBe(join(directory, 'queue.yaml'));
  const again = loaded.withFileText('storage: embedded\nnote: here\nlimits: { max: 7 }\n');
  expect(again.values).toEqual({
    savings: true,
    storage: 'memory',
    note: 'from a flag',
    limits: { max: 7 },
  });
  expect(() => loaded.withFileText('savings: 5\n')).toThrow(/^queue\.yaml:1: savings must be/);
});

test('filePath: is where a file would be read that does not exist', () => {
  const inputs = { environment: {}, cwd: directory, defaultFile: 'none.yaml' };
  const loaded = loadConfig(definition, inputs);
  expect(loaded.file).toBeUndefined();
  expect(loaded.filePath).toBe(join(directory, 'none.yaml'));
  const again = loaded.withFileText('savings: false\n');
  expect(again.values.savings).toBe(false);
});

test('describeSetting: has the default, the expected value and the choices', () => {
  const [storage, , max, note] = definition.settings.map(describeSetting);
  expect(storage).toEqual({
    description: 'Store',
    default: 'embedded',
    expected: 'one of embedded or memory',
    choices: ['embedded', 'memory'],
  });
  expect(max).toMatchObject({ default: '200k', choices: undefined });
  expect(max!.expected).toContain('200k');
  expect(note).toMatchObject({ default: null, expected: 'text' });
});
