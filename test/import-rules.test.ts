import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const oxlint = join(root, 'node_modules', 'oxlint', 'bin', 'oxlint');
let folder: string;

const forbidden = [
  ['packages/contract/src/planted.ts', '@millrace/kit/errors'],
  ['packages/kit/src/planted.ts', '@millrace/engine'],
  ['packages/queue/src/planted.ts', '@millrace/db'],
  ['packages/kit/src/planted.ts', '@millrace/wire/http1'],
  ['packages/wire/src/http2/planted.ts', '@millrace/contract/db'],
  ['packages/wire/src/http2/planted.ts', '@millrace/kit/http'],
  ['packages/engine/src/planted.ts', '@millrace/wire/grpc'],
  ['packages/db/src/server/planted.ts', '@millrace/queue'],
  ['packages/engine/src/planted.ts', '@grpc/grpc-js'],
  ['packages/engine/src/planted.ts', '../server/main.js'],
  ['packages/engine/src/planted.ts', '@millrace/contract/db'],
  ['packages/queue/src/planted.ts', '@millrace/daemon'],
  ['packages/daemon/src/planted.ts', '@millrace/queue'],
  ['packages/daemon/src/plans/planted.ts', '@millrace/queue/serve'],
  ['packages/client/src/planted.ts', '@millrace/kit/errors'],
  ['packages/client/src/planted.ts', 'node:fs'],
  ['packages/worker/src/planted.ts', '@millrace/kit/errors'],
  ['packages/worker/src/planted.ts', '@millrace/queue'],
  ['packages/dashboard/src/planted.ts', '@millrace/kit/errors'],
] as const;

const allowed = [
  ['packages/kit/src/planted.ts', '@millrace/contract/queue'],
  ['packages/wire/src/http2/planted.ts', '@millrace/kit/clock'],
  ['packages/db/src/server/planted.ts', '@millrace/wire/grpc'],
  ['packages/queue/src/planted.ts', '@millrace/wire/http1'],
  ['packages/engine/src/planted.ts', '@millrace/kit/errors'],
  ['packages/engine/src/planted.ts', '@millrace/contract/db-reasons'],
  ['packages/queue/src/planted.ts', '@millrace/engine'],
  ['packages/db/src/server/planted.ts', '@millrace/engine/value/filter'],
  ['packages/queue/src/planted.ts', '@millrace/worker'],
  ['packages/daemon/src/plans/planted.ts', '@millrace/queue'],
  ['packages/worker/src/planted.ts', '@millrace/client'],
  ['packages/client/src/planted.ts', '@millrace/contract/queue'],
] as const;

interface Diagnostic {
  code: string;
  severity: string;
  filename: string;
}

/** What the linter says of each planted file, which are linted all at once. */
let diagnostics: Diagnostic[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-imports-'));
  copyFileSync(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
  for (const planted of [...forbidden, ...allowed]) {
    const file = join(folder, pathOf(planted));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `import '${planted[1]}';\n`);
  }
  const args = [oxlint, '--format=json', 'packages'];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  expect(status).not.toBe(0);
  const report = JSON.parse(stdout) as { diagnostics: Diagnostic[]; number_of_files: number };
  expect(report.number_of_files).toBe(forbidden.length + allowed.length);
  diagnostics = report.diagnostics;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Planted = readonly [path: string, imported: string];

/** Each has a file of its own. */
function pathOf([path, imported]: Planted): string {
  return path.replace('.ts', `-${imported.replace(/\W+/g, '-')}.ts`);
}

function restrictedIn(planted: Planted): string[] {
  const path = pathOf(planted);
  return diagnostics
    .filter(({ code, filename }) => filename === path && code.includes('no-restricted-imports'))
    .map(({ severity }) => severity);
}

test.each(forbidden)('%s may not import %s', (...planted) => {
  expect(restrictedIn(planted)).toEqual(['error']);
});

test.each(allowed)('%s may import %s', (...planted) => {
  expect(restrictedIn(planted)).toEqual([]);
});

test('the linter sees every source file', () => {
  const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter(
      (file) => /^packages\/[^/]+\/src\/.*\.tsx?$/.test(file) && !file.includes('/generated/'),
    );
  const { stdout } = spawnSync(process.execPath, [oxlint, 'packages'], {
    cwd: root,
    encoding: 'utf8',
  });
  const seen = Number(/on (\d+) files/.exec(stdout)?.[1]);
  expect(seen).toBeGreaterThanOrEqual(tracked.length);
});
