import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../', import.meta.url);
const page = readFileSync(new URL('docs/explanation/request-paths.md', root), 'utf8');

test('docs: every file of the request paths exists', () => {
  const steps = [...page.matchAll(/^\d+\. `(\w+)\/(\S+)`/gm)];
  expect(steps.length).toBeGreaterThan(40);
  const missing = steps.filter(
    ([, part, path]) => !existsSync(new URL(`packages/${part}/src/${path}`, root)),
  );
  expect(missing.map(([line]) => line)).toEqual([]);
});
