import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const oxlint = join(root, 'node_modules', 'oxlint', 'bin', 'oxlint');
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-imports-'));
  copyFileSync(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Lints one planted file and returns what the linter said. */
function lintPlanted(path: string, text: string): { status: number | null; output: string } {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  const result = spawnSync(process.execPath, [oxlint, path], { cwd: folder, encoding: 'utf8' });
  rmSync(file);
  return { status: result.status, output: result.stdout + result.stderr };
}

test.each([
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
])('%s may not import %s', (path, imported) => {
  const { status, output } = lintPlanted(path, `import '${imported}';\n`);
  expect(output).toContain('no-restricted-imports');
  expect(status).not.toBe(0);
});

test.each([
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
])('%s may import %s', (path, imported) => {
  const { output } = lintPlanted(path, `import '${imported}';\n`);
  expect(output).not.toContain('no-restricted-imports');
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
