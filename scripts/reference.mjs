/**
 * `npm run reference`: writes docs/reference from the contracts and from the help of `ctl`, so that
 * neither can say what the other does not. With `--check` it only reports whether that was done.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { parse } from 'yaml';
import { prepare, root, say } from './prepare.mjs';

prepare();
const { openApiYaml } = await import('../packages/contract/dist/documents.js');
const folder = join(root, 'docs', 'reference');
/** Options of every command: listed once. */
const everywhere = new Set();
const methods = ['get', 'put', 'post', 'patch', 'delete'];

const apis = [
  { name: 'queue', title: 'REST API of the queue', source: 'queue.openapi.yaml' },
  { name: 'daemon', title: 'REST API of the daemon', source: 'daemon.openapi.yaml' },
  { name: 'db', title: 'REST API of the database', source: 'proto/millrace/db/v1/db.proto' },
];
const pages = new Map([
  ['README.md', contents()],
  ['ctl.md', commandLine()],
  ...apis.map((api) => [`${api.name}-api.md`, apiPage(api)]),
]);

const stale = [];
for (const [name, text] of pages) {
  const file = join(folder, name);
  const wanted = await format(text, { parser: 'markdown', printWidth: 100 });
  if (existsSync(file) && readFileSync(file, 'utf8') === wanted) continue;
  stale.push(name);
  if (process.argv.includes('--check')) continue;
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, wanted);
}
if (process.argv.includes('--check') && stale.length > 0) {
  say(`docs/reference is not up to date (${stale.join(', ')}): run \`npm run reference\``);
  process.exit(1);
}

function contents() {
  const list = apis.map(({ name, title }) => `- [${title}](${name}-api.md)`).join('\n');
  return `# Reference

Written by \`npm run reference\` from the contracts and from \`ctl --help\`. Do not edit.

- [Command line](ctl.md)
${list}

The whole of each API, with every schema, is in its document: a running server hands it out at \`/openapi.yaml\` (queue, database) or \`/api/docs/openapi.yaml\` (daemon), and shows it at \`/docs\` (database) or \`/api/docs\` (daemon).
`;
}

function commandLine() {
  const ctl = join(root, 'bin', 'ctl');
  const result = spawnSync(process.execPath, [ctl, 'help', '--json'], { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`ctl help --json failed: ${result.stderr}`);
  const shape = JSON.parse(result.stdout);
  for (const { long } of shape.options) everywhere.add(long);
  const own = shape.options.filter(({ long }) => long !== '--help');
  return [
    '# Command line',
    '',
    shape.description,
    '',
    '## Everywhere',
    '',
    options(own),
    '',
    ...shape.commands.map((command) => commandPart(command, 2, [])),
  ].join('\n');
}

/** `shared`: the options that most commands of its group take, listed once with the group. */
function commandPart(command, depth, shared) {
  const given = command.options.filter(({ long }) => !everywhere.has(long));
  const children = command.commands ?? [];
  const isGroup = depth === 2 && children.length > 0;
  const common = isGroup ? commonOptions(children) : shared;
  const takesShared = !isGroup && common.length > 0 && common.every((option) => has(given, option));
  const own = takesShared ? given.filter((option) => !has(common, option)) : given;
  return [
    `${'#'.repeat(Math.min(depth, 4))} ${command.path}`,
    '',
    plain(command.description || command.summary),
    '',
    `\`${command.usage}\``,
    '',
    ...(command.aliases.length > 0 ? [`Also: \`${command.aliases.join('`, `')}\`.`, ''] : []),
    own.length > 0 ? `${options(own)}\n` : '',
    takesShared ? `Also takes the shared options of \`${groupOf(command)}\`.\n` : '',
    isGroup && common.length > 0 ? `Shared options:\n\n${options(common)}\n` : '',
    exitCodes(command),
    ...children.map((child) => commandPart(child, depth + 1, common)),
  ].join('\n');
}

function groupOf({ path }) {
  return path.split(' ').slice(0, 2).join(' ');
}

function has(list, { long, description }) {
  return list.some((option) => option.long === long && option.description === description);
}

/** Options that more than half of the commands below take, word for word. */
function commonOptions(commands) {
  const leaves = leavesOf(commands);
  if (leaves.length < 4) return [];
  const all = leaves.flatMap(({ options: of }) => of);
  const distinct = all.filter(
    (option, index) => all.findIndex((other) => has([other], option)) === index,
  );
  const count = (option) => leaves.filter(({ options: of }) => has(of, option)).length;
  return distinct.filter(
    (option) => count(option) > leaves.length / 2 && !everywhere.has(option.long),
  );
}

function leavesOf(commands) {
  return commands.flatMap((command) =>
    command.commands?.length > 0 ? leavesOf(command.commands) : [command],
  );
}

function options(list) {
  return list
    .map(({ long, short, value, description, choices }) => {
      const name = [short, long].filter(Boolean).join(', ') + (value ? ` <${value}>` : '');
      const allowed = choices.length > 0 ? ` (one of ${choices.join(', ')})` : '';
      return `- \`${name}\`: ${plain(description)}${allowed}`;
    })
    .join('\n');
}

function exitCodes({ exit_codes: codes }) {
  const usual = { 0: 'ok', 1: 'failure', 2: 'usage error' };
  const special = Object.entries(codes).filter(([code, meaning]) => usual[code] !== meaning);
  if (special.length === 0) return '';
  return `Exit codes: ${special.map(([code, meaning]) => `${code} ${meaning}`).join('; ')}.\n`;
}

function apiPage({ name, title, source }) {
  const document = parse(openApiYaml(name));
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    methods.filter((method) => item[method]).map((method) => ({ path, method, ...item[method] })),
  );
  const tags = [...new Set(operations.flatMap(({ tags: of = [] }) => of))];
  const usual = usualCodes(operations);
  return [
    `# ${title}`,
    '',
    `From [${source}](../../packages/contract/${source}), version ${document.info.version}.`,
    '',
    `Nearly every operation may also answer ${usual.join(', ')}.`,
    '',
    ...tags.map((tag) => {
      const of = operations.filter(({ tags: own = [] }) => own[0] === tag);
      return of.length > 0 ? tagPart(tag, of, usual) : '';
    }),
  ].join('\n');
}

function tagPart(tag, operations, usual) {
  const items = operations.map(({ method, path, summary, operationId, responses, ...rest }) => {
    const success = Object.keys(responses).find((status) => status.startsWith('2')) ?? '';
    const codes = (rest['x-codes'] ?? []).filter((code) => !usual.includes(code));
    const refusals = codes.length > 0 ? `, or ${codes.join(', ')}` : '';
    return `- \`${method.toUpperCase()} ${path}\` (\`${operationId}\`): ${summary ?? operationId}. Answers ${success}${refusals}.`;
  });
  return [`## ${tag}`, '', ...items, ''].join('\n');
}

/** What three quarters of those that refuse anything may answer: said once, not in every row. */
function usualCodes(operations) {
  const lists = operations.map((operation) => operation['x-codes'] ?? []).filter((of) => of.length);
  const count = (code) => lists.filter((of) => of.includes(code)).length;
  return [...new Set(lists.flat())].filter((code) => count(code) >= lists.length * 0.75);
}

function plain(text) {
  return text.replaceAll('<', '&lt;');
}
