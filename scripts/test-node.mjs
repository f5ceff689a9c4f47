/**
 * `npm run test:node -- 22 [vitest arguments]`: runs the tests on another version of Node, which
 * comes from npm and is stored in .cache/node.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { bin, prepare, root, say } from './prepare.mjs';

const [version = '', ...args] = process.argv.slice(2);
if (!/^\d+(\.\d+){0,2}$/.test(version)) {
  say('usage: npm run test:node -- VERSION [vitest arguments], for example 22');
  process.exit(2);
}
const binary = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
const home = join(root, '.cache', 'node', version);
const node = join(
  home,
  'node_modules',
  binary,
  'bin',
  process.platform === 'win32' ? 'node.exe' : 'node',
);
if (!existsSync(node)) {
  say(`Installing ${binary}@${version} ...`);
  mkdirSync(home, { recursive: true });
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', '--prefix', home, ...flags, `${binary}@${version}`], {
    stdio: 'inherit',
    // Below npm run, npm would install into the project that it was started in.
    env: withoutNpm(process.env),
  });
}
prepare();
const path = `${dirname(node)}${delimiter}${process.env.PATH}`;
say(`Testing on Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`);
const { status } = spawnSync(node, [bin('vitest'), 'run', ...args], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PATH: path },
});
process.exit(status ?? 1);

function withoutNpm(env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('npm_')));
}
