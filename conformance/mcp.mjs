/**
 * Runs the official MCP clients against the daemon: the conformance runner's scenarios that need no
 * fixture tools, and the inspector's command line. Both need Node 22, which comes from npm.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, 'node_modules');

/** The others call tools with fixed names, or capabilities that the daemon does not declare. */
const scenarios = [
  'server-initialize',
  'ping',
  'tools-list',
  'dns-rebinding-protection',
  'server-sse-polling',
  'server-sse-multiple-streams',
];

const toolCount = 9;

/** Resolves with true when everything passed. */
export async function runMcp(root, say) {
  if (!existsSync(modules)) {
    const args = ['install', '--no-save', '--ignore-scripts', '--prefix', here];
    const { status } = spawnSync('npm', args, { stdio: 'inherit' });
    if (status !== 0) return false;
  }
  const node = nodeProgram();
  if (node === undefined) {
    say(
      `skipped: needs Node 22, which npm has no build of for ${process.platform}-${process.arch}`,
    );
    return true;
  }
  const home = mkdtempSync(join(tmpdir(), 'millrace-mcp-'));
  const daemon = await startDaemon(root, home);
  try {
    const url = `${daemon.url}/mcp`;
    const results = [
      ...scenarios.map((name) => runScenario(node, url, name)),
      inspect(node, url, ['--method', 'tools/list'], hasAllTools),
      inspect(node, url, ['--method', 'tools/call', '--tool-name', 'spend'], hasSpend),
    ];
    for (const { name, isOk, isVoid } of results) {
      const verdict = isVoid ? 'not applicable: the server keeps no sessions' : 'ok';
      say(`${name.padEnd(42)} ${isOk ? verdict : 'FAILED'}`);
    }
    return results.every(({ isOk }) => isOk);
  } finally {
    await daemon.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

function nodeProgram() {
  if (Number(process.versions.node.split('.')[0]) >= 22) return process.execPath;
  const file = join(modules, `node-${process.platform}-${process.arch}`, 'bin', 'node');
  return existsSync(file) ? file : undefined;
}

async function startDaemon(root, home) {
  const args = ['daemon', 'serve', '--no-auth', '--listen', '127.0.0.1:0'];
  const child = spawn(
    process.execPath,
    [join(root, 'bin', 'ctl'), ...args, '--data', join(home, 'data')],
    { env: { HOME: home, PATH: '/usr/bin:/bin' }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  for await (const line of createInterface(child.stdout)) {
    const event = line.startsWith('{') ? JSON.parse(line) : {};
    if (event.event !== 'listening') continue;
    const stop = () => (child.kill('SIGTERM'), ended);
    return { url: event.url, stop };
  }
  throw new Error('the daemon did not start');
}

function runScenario(node, url, name) {
  const args = [join(modules, '.bin', 'conformance'), 'server', '--url', url, '--scenario', name];
  const { status, stdout } = spawnSync(node, args, { encoding: 'utf8', timeout: 120_000 });
  const summary = /Passed: (\d+)\/(\d+), (\d+) failed, (\d+) warnings/.exec(stdout ?? '');
  const isOk = status === 0 && summary?.[3] === '0';
  return { name: `conformance: ${name}`, isOk, isVoid: summary?.[2] === '0' };
}

function inspect(node, url, args, isExpected) {
  const program = join(modules, '.bin', 'mcp-inspector');
  const all = [program, '--cli', url, '--transport', 'http', ...args];
  const { status, stdout } = spawnSync(node, all, { encoding: 'utf8', timeout: 120_000 });
  const isOk = status === 0 && isExpected(JSON.parse(stdout));
  return { name: `inspector: ${args[1]}`, isOk, isVoid: false };
}

function hasAllTools({ tools }) {
  return tools.length === toolCount;
}

function hasSpend({ structuredContent }) {
  return typeof structuredContent?.total_usd === 'number';
}
