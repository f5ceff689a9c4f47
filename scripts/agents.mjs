/**
 * `npm run agents`: runs the real command-line agents against fake model servers on loopback and
 * prints what works. Options: `--cli NAME`, `--case TEXT` (part of a name), `--publish` (writes
 * docs/reference/agent-support.md). Exits with 1 when a case fails that is not known to.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { spawnSync } from 'node:child_process';
import { format } from 'prettier';
import { prepare, root, say } from './prepare.mjs';

const { values: options } = parseArgs({
  options: {
    cli: { type: 'string', multiple: true },
    case: { type: 'string', multiple: true },
    publish: { type: 'boolean', default: false },
  },
});

prepare();
if (!existsSync(join(root, 'agents', 'node_modules'))) {
  // Not `npm ci`: it refuses when a registry lacks a build for another platform.
  const args = ['install', '--no-save', '--ignore-scripts', '--prefix', join(root, 'agents')];
  const { status } = spawnSync('npm', args, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
const { clis } = await import('../agents/clis.mjs');
const { cases } = await import('../agents/cases.mjs');
const { World } = await import('../agents/world.mjs');

const names = options.cli ?? Object.keys(clis);
const unknown = names.find((name) => !Object.hasOwn(clis, name));
if (unknown !== undefined) {
  say(`There is no CLI "${unknown}". Choose from: ${Object.keys(clis).join(', ')}`);
  process.exit(2);
}
const chosen = Object.keys(cases).filter(
  (name) => !options.case || options.case.some((part) => name.includes(part)),
);
const table = new Map(chosen.map((name) => [name, new Map()]));
const notes = [];

for (const name of names) await runCli(name);
printTable();
if (options.publish) await publish();
const isRed = [...table.values()].some((row) => [...row.values()].includes('FAILED'));
process.exit(isRed ? 1 : 0);

async function runCli(name) {
  const cli = { name, ...clis[name] };
  if (cli.binary() === undefined) {
    say(`${name}: no build for ${process.platform}-${process.arch}`);
    for (const row of table.values()) row.set(name, 'no build');
    return;
  }
  const config = { agents: { trust_workspace: ['gemini'] } };
  const world = await World.start({ names: [name], config });
  try {
    for (const one of chosen) await runCase(world, cli, one);
  } finally {
    await world.close();
  }
}

async function runCase(world, cli, name) {
  const known = cli.known?.[name];
  if (known !== undefined) {
    table.get(name).set(cli.name, 'no');
    notes.push(`${cli.name}, ${name}: ${known}`);
    return;
  }
  const startedAt = performance.now();
  let cell = 'ok';
  try {
    await cases[name](world, cli);
  } catch (error) {
    cell = 'FAILED';
    const reason = String(error?.message ?? error).replaceAll(/\s+/g, ' ').slice(0, 300);
    notes.push(`${cli.name}, ${name}: ${reason}`);
    say(`  ${reason}`);
  }
  table.get(name).set(cli.name, cell);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  say(`${cli.name.padEnd(9)} ${name.padEnd(32)} ${cell} (${seconds} s)`);
}

function printTable() {
  say(['capability'.padEnd(32), ...names.map((name) => name.padEnd(9))].join(' '));
  for (const [name, row] of table) {
    say([name.padEnd(32), ...names.map((cli) => (row.get(cli) ?? '').padEnd(9))].join(' '));
  }
}

async function publish() {
  const versions = names.map((name) => `${name} ${clis[name].version() ?? '(no build)'}`);
  const lines = [
    '# Supported agents',
    '',
    `Results of \`npm run agents\` on ${new Date().toISOString().slice(0, 10)} on`,
    `${process.platform}-${process.arch}, against fake model servers: ${versions.join(', ')}.`,
    '',
    `| Capability | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---').join('|')}|`,
    ...[...table].map(
      ([name, row]) => `| ${name} | ${names.map((cli) => row.get(cli) ?? '').join(' | ')} |`,
    ),
    '',
    ...(notes.length > 0 ? ['## Notes', '', ...notes.map((note) => `- ${note}`)] : []),
    '',
  ];
  const text = await format(lines.join('\n'), { parser: 'markdown', printWidth: 100 });
  writeFileSync(join(root, 'docs', 'reference', 'agent-support.md'), text);
}
