/**
 * Finds private language in sources: identifiers, strings, comments and test titles that use words
 * a newcomer would not search for. `node scripts/language.mjs [PATH ...]` lists them with the
 * word to prefer; the rules and why are in CONTRIBUTING.md.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseSync, Visitor } from 'rolldown/utils';

/** Words inside an identifier, split at capitals: `mostBytes` has `most` and `bytes`. */
const identifierWords = {
  most: 'max',
  usual: 'default',
  longest: 'max (for limits)',
  shortest: 'min (for limits)',
  ask: 'request, params or options',
  asks: 'request, params or options',
  asked: 'request, params or options',
  house: 'a plain name',
  door: 'listener',
  doors: 'listeners',
  desk: 'a plain name',
  face: 'interface, transport or api',
  faces: 'interfaces, transports or apis',
  wreck: 'corrupt or damaged',
  wrecks: 'corrupt or damaged',
  stray: 'orphan, unexpected or unknown',
  strays: 'orphan, unexpected or unknown',
  rider: 'a plain name',
  look: 'check, scan, read or view',
  looks: 'check, scan, read or view',
  looked: 'check, scan, read or view',
  hear: 'receive, on*, subscribe',
  hears: 'receive, on*, subscribe',
  heard: 'received',
  tell: 'report, notify, log or send',
  tells: 'report, notify, log or send',
  told: 'reported, notified or sent',
  kept: 'stored, retained or cached',
};

/** `longest` and `shortest` are fine as adjectives of real values; only limits are renamed. */
const identifierStarts = new Set(['most', 'usual', 'longest', 'shortest']);

/** Field names of the API and of stored files, which stay: `kept` of a savings sample. */
const fieldNames = new Set(['kept']);

/** Phrases of strings, comments and titles. */
const phrases = [
  [/\bso many\b/i, 'a number or "count"'],
  [/\bgo(?:es)? (?:its|their) way\b/i, 'run or proceed'],
  [/\bcomes? into being\b/i, 'is created'],
  [/\banew\b/i, 'again or new'],
  [/\bmend(?:s|ed|ing)?\b/i, 'fix'],
  [/\bfor ever\b/i, 'forever, unlimited or never expires'],
  [/\bof (?:its|their) own accord\b/i, 'automatically'],
  [/\b(?:is|are|was|were|be) told\b/i, 'receives, is notified or sees'],
  [/\btells? (?:of|whether|what|how|which|that|the|a|it|us|them)\b/i, 'says, reports or returns'],
  [/\bhear(?:s|d)? (?:of|from|that|about)\b/i, 'receives or is notified of'],
  [/\blay(?:s|ing)? (?:work|a task|tasks)\b/i, 'queue'],
  [/\b(?:is|are|was|were) laid\b/i, 'queued or stored'],
  [/\bstands? (?:elsewhere|beside|here|there|in (?:the|its|a|one)|under|above|below)\b/i, 'is'],
  [/\b(?:is|was|are|were) asked (?:for|of|to|by|whether)\b/i, 'requested'],
  [/\bin (?:its|the queue's|our) own words\b/i, 'plain words'],
  [/\bgo on with\b/i, 'continue or resume'],
  [/\bfares?\b/i, 'status'],
  [/\bamid\b/i, 'during'],
  [/(?<!millrace\.)\bwrecks?\b/i, 'corrupt or damaged'],
  [/\bstrays?\b/i, 'orphan, unexpected or unknown'],
  [/\bdearer\b/i, 'more expensive or slower'],
  [/\blest\b/i, 'so that ... not'],
  [/\bthousand million\b/i, 'billion'],
  [/\b(?:look|ask) again\b/i, 'refresh or retry'],
  [/\bwhat is (?:owed|meant for)\b/i, 'a plain term'],
];

const root = fileURLToPath(new URL('..', import.meta.url));

/** Sources and tests that this rule covers. */
export function sourceFiles(paths = ['packages', 'test']) {
  const out = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...paths], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  return out.split('\n').filter((file) => /\.tsx?$/.test(file) && !file.includes('/generated/'));
}

/**
 * @param {string} file path, for messages and the parser
 * @param {string} source
 * @returns {{file: string, line: number, kind: string, text: string, prefer: string}[]}
 */
export function violationsIn(file, source) {
  const found = [];
  const lineOf = (offset) => source.slice(0, offset).split('\n').length;
  const add = (offset, kind, text, prefer) =>
    found.push({ file, line: lineOf(offset), kind, text, prefer });
  const { program, comments } = parseSync(file, source);
  const fields = new Set();
  const inIdentifier = (node) => {
    if (fields.has(node.start)) return;
    const bad = badWord(node.name);
    if (bad) add(node.start, 'identifier', node.name, identifierWords[bad]);
  };
  const inText = (kind, start, text) => {
    for (const [pattern, prefer] of phrases) {
      const match = pattern.exec(text);
      if (match) add(start + match.index, kind, match[0], prefer);
    }
  };
  const field = (node) => fieldNames.has(node.name) && fields.add(node.start);
  new Visitor({
    Property: ({ key }) => field(key),
    TSPropertySignature: ({ key }) => field(key),
    MemberExpression: ({ property }) => field(property),
    Identifier: inIdentifier,
    PrivateIdentifier: inIdentifier,
    Literal(node) {
      if (typeof node.value === 'string') inText('string', node.start, node.value);
    },
    TemplateElement: (node) => inText('string', node.start, node.value.raw),
    JSXText: (node) => inText('string', node.start, node.value),
  }).visit(program);
  for (const { value, start } of comments) {
    inText('comment', start, value.replace(/\n\s*\*?\s*/g, ' '));
  }
  return found;
}

/** Keys of settings that are published. */
const settingNames = new Set(['asks']);

function badWord(name) {
  // Names of the contracts are spelled with underscores and stay.
  if (name.includes('_') || settingNames.has(name)) return undefined;
  const words = name
    .replace(/^[#_]+/, '')
    .split(/(?<=[a-z0-9])(?=[A-Z])/)
    .map((word) => word.toLowerCase());
  return words.find((word, index) =>
    identifierStarts.has(word)
      ? index === 0 && words.length > 1
      : Object.hasOwn(identifierWords, word),
  );
}

export function violations(paths) {
  return sourceFiles(paths).flatMap((file) =>
    violationsIn(file, readFileSync(join(root, file), 'utf8')),
  );
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const paths = process.argv.slice(2);
  const found = violations(paths.length > 0 ? paths : undefined);
  for (const { file, line, kind, text, prefer } of found) {
    process.stdout.write(`${file}:${line} ${kind} "${text}": prefer ${prefer}\n`);
  }
  process.stdout.write(`${found.length} findings\n`);
  process.exitCode = found.length > 0 ? 1 : 0;
}
