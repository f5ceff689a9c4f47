/**
 * `npm run agents`: runs the real command-line agents against fake model servers on loopback and
 * prints what works. `npm run agents -- --help` lists the options.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { supportPage } from './agents-page.mjs';
import { readOptions } from './options.mjs';
import { prepare, root, say } from './prepare.mjs';

const { values: options } = readOptions({
  name: 'agents',
  about: `Runs the real command-line agents against fake model servers on loopback and prints what works.
Exits with 1 when a case fails that is not known to.`,
  options: {
    cli: { type: 'string', multiple: true, help: 'Only this CLI; may be repeated' },
    case: {
      type: 'string',
      multiple: true,
      help: 'Only cases with this in their name; may be repeated',
    },
    record: {
      type: 'boolean',
      default: false,
      help: 'Write what this version of a CLI writes and offers to agents/shapes.json',
    },
    publish: { type: 'boolean', default: false, help: 'Write docs/reference/agent-support.md' },
  },
});

prepare();
if (!existsSync(join(root, 'agents', 'node_modules'))) {
  // The CLIs are optional dependencies: npm leaves out what it cannot fetch or what does not run here.
  const args = ['ci', '--ignore-scripts', '--prefix', join(root, 'agents')];
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
const platform = `${process.platform}-${process.arch}`;
const build = buildName();
const resultsFile = join(root, 'agents', 'results.json');
const table = new Map(chosen.map((name) => [name, new Map()]));
const notes = [];

// With no case chosen, --publish writes the page from the stored results.
if (chosen.length > 0) for (const name of names) await runCli(name);
printTable();
if (options.publish) {
  const page = await supportPage({ stored: save(), clis, cases: Object.keys(cases), platform });
  writeFileSync(join(root, 'docs', 'reference', 'agent-support.md'), page);
}
const isRed = [...table.values()].some((row) => [...row.values()].includes('FAILED'));
process.exit(isRed ? 1 : 0);

async function runCli(name) {
  // A second version of a CLI is a row of its own, and the same backend.
  const cli = { name, row: name, isRecording: options.record, ...clis[name] };
  if (cli.binary() === undefined) {
    say(`${name}: not installed; npm has no build for ${platform} or could not fetch it`);
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
  const isOverAcp = name.startsWith('acp: ');
  const known = cli.known?.[name] ?? (isOverAcp ? cli.adapter?.missing : undefined);
  if (known !== undefined) {
    table.get(name).set(cli.row, 'no');
    notes.push(`${cli.row}, ${name}: ${known}`);
    return;
  }
  const startedAt = performance.now();
  let cell = 'ok';
  let detail;
  try {
    detail = await cases[name](world, cli);
    const remark = cli.remarks?.[name];
    if (remark !== undefined) notes.push(`${cli.row}, ${name}: ${remark}`);
  } catch (error) {
    cell = 'FAILED';
    const reason = String(error?.message ?? error)
      .replaceAll(/\s+/g, ' ')
      .slice(0, 300);
    notes.push(`${cli.row}, ${name}: ${reason}`);
    say(`  ${reason}`);
  }
  table.get(name).set(cli.row, cell);
  // A long run that is broken off leaves the results that it had.
  if (options.publish) save();
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  say(`${cli.row.padEnd(11)} ${name.padEnd(32)} ${cell} (${seconds} s) ${detail ?? ''}`.trim());
}

function printTable() {
  say(['capability'.padEnd(32), ...names.map((name) => name.padEnd(9))].join(' '));
  for (const [name, row] of table) {
    say([name.padEnd(32), ...names.map((cli) => (row.get(cli) ?? '').padEnd(9))].join(' '));
  }
}

/** The commit that is tested; marked when files differ from it. */
function buildName() {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.trim();
  const commit = git('rev-parse', '--short=10', 'HEAD');
  return git('status', '--porcelain', '--', 'packages') === '' ? commit : `${commit} with changes`;
}

/** Adds the cells of this run to those of earlier ones, so that a CLI can be run alone. */
function save() {
  const date = new Date().toISOString().slice(0, 10);
  const stored = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
  for (const name of names) {
    const version = clis[name].version() ?? null;
    const before = stored[name]?.version === version ? stored[name].cells : {};
    const done = chosen.filter((one) => table.get(one).has(name));
    if (done.length === 0) continue;
    const cells = Object.fromEntries(
      done.map((one) => [
        one,
        { cell: table.get(one).get(name), note: noteOf(name, one), date, build },
      ]),
    );
    stored[name] = { version, platform, cells: { ...before, ...cells } };
  }
  writeFileSync(resultsFile, `${JSON.stringify(stored, null, 2)}\n`);
  return stored;
}

function noteOf(name, one) {
  const start = `${name}, ${one}: `;
  return notes.find((note) => note.startsWith(start))?.slice(start.length);
}
