/**
 * `npm run check`: what can be judged without running the tests. Every check runs, so that one
 * run shows all there is to fix.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { bin, prepare, root, say } from './prepare.mjs';

prepare();

const node = process.execPath;
// These print their counts even when they pass.
const importCheck = 'import cycles and layers';
const requestCheck = 'files that a request executes';
// Formatting every file takes longer than all other checks; only files that changed are read again.
const formatCache = ['--cache', '--cache-location=node_modules/.cache/prettier/files.json'];
const checks = [
  ['format', node, [bin('prettier'), '--check', '--log-level=warn', ...formatCache, '.']],
  ['lint and import rules', node, [bin('oxlint'), '--type-aware', '--deny-warnings']],
  [importCheck, node, ['scripts/import-cycles.mjs']],
  ['types of tests and benchmarks', node, [bin('typescript', 'tsc'), '-p', 'tsconfig.tests.json']],
  [
    'types of the tests in a browser',
    node,
    [bin('typescript', 'tsc'), '-p', 'packages/dashboard/tsconfig.tests.json'],
  ],
  ['types of the Python SDK', node, [bin('pyright'), '-p', 'sdks/python']],
  ['generated code is up to date', 'npm', ['run', '--silent', 'generate', '--', '--check']],
  ['reference is up to date', node, ['scripts/reference.mjs', '--check']],
  ['proto lint', 'npm', ['run', '--silent', 'lint', '-w', '@millrace/contract']],
  ['proto breaking changes', 'npm', ['run', '--silent', 'breaking', '-w', '@millrace/contract']],
  ['OpenAPI lint', node, [bin('@redocly/cli', 'redocly'), 'lint', '--format=stylish']],
  [requestCheck, node, ['scripts/request-files.mjs', '--built']],
  ['dead code and unused dependencies', node, [bin('knip')]],
];

const failed = [];
const waiting = [...checks];
// The longest is the first, and takes one core as long as all others take the rest.
await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, judge));

async function judge() {
  for (let check; (check = waiting.shift());) {
    const [title, command, args] = check;
    const started = performance.now();
    const { ok, out } = await outcomeOf(command, args);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    say(`${ok ? 'ok    ' : 'FAILED'} ${title} (${seconds} s)`);
    if ([importCheck, requestCheck].includes(title) && ok) {
      say(out.trim().replaceAll(/^/gm, '       '));
    }
    if (ok) continue;
    failed.push(title);
    say(out);
  }
}

function outcomeOf(command, args) {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => (out += text));
  }
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ ok: false, out: error.message }));
    child.on('close', (status) => resolve({ ok: status === 0, out }));
  });
}

if (failed.length > 0) {
  say(`check failed: ${failed.join('; ')}`);
  process.exit(1);
}
