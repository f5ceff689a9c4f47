import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const home = fileURLToPath(new URL('..', import.meta.url));
const buf = fileURLToPath(new URL('../../../node_modules/.bin/buf', import.meta.url));

function differences(image: string, change: (text: string) => string, file: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'millrace-breaking-'));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(join(home, 'proto'), join(copy, 'proto'), { recursive: true });
  cpSync(join(home, 'buf.yaml'), join(copy, 'buf.yaml'));
  const path = join(copy, 'proto', file);
  writeFileSync(path, change(readFileSync(path, 'utf8')));
  const args = ['breaking', '--against', `proto/${image}`, '--exclude-imports'];
  try {
    return execFileSync(buf, args, { cwd: copy, encoding: 'utf8' });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

test.each([
  ['v1.0.0.binpb', 'millrace/db/v1/db.proto', 'string id = 1;'],
  ['queue-v1.0.0.binpb', 'queue/v1/queue.proto', 'string handler_ref = 2;'],
])('%s: a field with another type is a breaking change', (image, file, field) => {
  const change = (text: string) => {
    expect(text).toContain(field);
    return text.replace(field, field.replace('string', 'bytes'));
  };
  expect(differences(image, change, file)).toMatch(/changed type from "string" to "bytes"/);
  expect(differences(image, (text) => text, file)).toBe('');
});
