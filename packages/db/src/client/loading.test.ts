import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const source = dirname(dirname(fileURLToPath(import.meta.url)));

/** Every package that is loaded with a file, through all the files that it imports at once. */
function packagesLoadedBy(entry: string): Set<string> {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    // What begins with `import type` or `export type` is gone at run time.
    for (const [, , from] of text.matchAll(/^(import|export)(?! type)[^;]*? from '([^']+)';/gms)) {
      if (from!.startsWith('.')) visit(join(dirname(file), from!.replace(/\.js$/, '.ts')));
      else packages.add(from!);
    }
  };
  visit(join(source, entry));
  return packages;
}

test('whoever only opens databases in process never loads gRPC', () => {
  const packages = packagesLoadedBy('index.ts');
  expect(packages).toContain('lmdb');
  expect([...packages].filter((name) => /grpc|protobuf|contract\/db$/.test(name))).toEqual([]);
});

test('whoever only connects never loads the storage engine', () => {
  const packages = packagesLoadedBy('client/index.ts');
  expect(packages).toContain('@grpc/grpc-js');
  expect([...packages].filter((name) => /lmdb|msgpackr|re2js|zod/.test(name))).toEqual([]);
});
