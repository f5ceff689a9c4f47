/**
 * `npm run check`: everything that can be judged without running the product. Every check runs,
 * so that one run shows all there is to mend.
 */
import { spawnSync } from 'node:child_process';
import { bin, prepare, root, say } from './prepare.mjs';

prepare();

const node = process.execPath;
const checks = [
  ['format', node, [bin('prettier'), '--check', '--log-level=warn', '.']],
  ['lint and import rules', node, [bin('oxlint'), '--type-aware', '--deny-warnings']],
  ['types of tests and benchmarks', node, [bin('typescript', 'tsc'), '-p', 'tsconfig.tests.json']],
  [
    'types of the tests in a browser',
    node,
    [bin('typescript', 'tsc'), '-p', 'packages/dashboard/tsconfig.tests.json'],
  ],
  ['generated code is up to date', 'npm', ['run', '--silent', 'generate', '--', '--check']],
  ['reference is up to date', node, ['scripts/reference.mjs', '--check']],
  ['proto lint', 'npm', ['run', '--silent', 'lint', '-w', '@millrace/contract']],
  ['proto breaking changes', 'npm', ['run', '--silent', 'breaking', '-w', '@millrace/contract']],
  ['OpenAPI lint', node, [bin('@redocly/cli', 'redocly'), 'lint', '--format=stylish']],
  ['dead code and unused dependencies', node, [bin('knip')]],
];

const failed = [];
for (const [title, command, args] of checks) {
  const started = performance.now();
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8', env });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const ok = result.status === 0;
  say(`${ok ? 'ok    ' : 'FAILED'} ${title} (${seconds} s)`);
  if (ok) continue;
  failed.push(title);
  say([result.error?.message, result.stdout, result.stderr].filter(Boolean).join('\n'));
}
if (failed.length > 0) {
  say(`check failed: ${failed.join('; ')}`);
  process.exit(1);
}
