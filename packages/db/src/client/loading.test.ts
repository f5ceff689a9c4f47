import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const source = dirname(dirname(fileURLToPath(import.meta.url)));
const engine = join(source, '..', '..', 'engine', 'src');

/** All packages that a file loads, including through static imports. */
function packagesLoadedBy(entry: string): Set<string> {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    // `import type` and `export type` do not exist at run time.
    for (const [, , from] of text.matchAll(/^(import|export)(?! type)[^;]*? from '([^']+)';/gms)) {
      const [, inEngine] = /^@millrace\/engine(?:$|\/(.*))/.exec(from!) ?? [];
      if (from!.startsWith('.')) visit(join(dirname(file), from!.replace(/\.js$/, '.ts')));
      else if (from!.startsWith('@millrace/engine'))
        visit(join(engine, `${inEngine ?? 'index'}.ts`));
      else packages.add(from!);
    }
  };
  visit(join(source, entry));
  return packages;
}

test('loading: an in-process database does not load gRPC', () => {
  const packages = packagesLoadedBy('index.ts');
  expect(packages).toContain('lmdb');
  expect([...packages].filter((name) => /grpc|protobuf|contract\/db$/.test(name))).toEqual([]);
});

test('loading: a client does not load the storage engine', () => {
  const packages = packagesLoadedBy('client/index.ts');
  expect(packages).toContain('@millrace/wire/grpc-client');
  expect([...packages].filter((name) => /lmdb|msgpackr|re2js|zod|grpc-js/.test(name))).toEqual([]);
});
