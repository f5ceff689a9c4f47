import { describe, expect, test } from 'vitest';
import { campaignSize } from '../../../test/support/campaign.js';
import { ctl, describedCommands, parsedCommands, wordsOf } from './in-process.test-support.js';

/* One table over all commands: help, options, suggestions, colours. */

const commands = await describedCommands();
const parsed = new Map((await parsedCommands()).map((command) => [command.path, command]));
const table = commands.map((command) => [command.path, command] as const);
/** These pass what they do not know on to another program. */
const passesOn = /^ctl (check|git)\b/;
const own = table.filter(([path]) => !passesOn.test(path));
/** The parser does the same for each option. */
const tried = campaignSize({ quick: 1, full: 100 });
/** All commands have one parser: each eighth shows what it does. */
const every = campaignSize({ quick: 8, full: 1 });
const some = own.filter((_, index) => index % every === 0);
const groups = own.filter(([, { commands: below }]) => below.length > 1);

test('the table has every command of the parser', () => {
  expect(commands.map(({ path }) => path)).toEqual([...parsed.keys()]);
  expect(commands.length).toBeGreaterThan(150);
});

describe.each(table)('%s', (path, command) => {
  test('--help lists every option that the parser takes, each with a description', async () => {
    const { out } = await ctl([...wordsOf(command), '--help'], { env: { COLUMNS: '200' } });
    const known = parsed.get(path)!.options.filter(({ hidden }) => !hidden);
    const missing = known.filter(({ flags }) => !out.includes(flags));
    expect(missing.map(({ flags }) => flags)).toEqual([]);
    expect(command.options.filter(({ description }) => description === '')).toEqual([]);
    expect(command.arguments.filter(({ description }) => description === '')).toEqual([]);
    const listed = [...out.matchAll(/^ {2}(?:-\w, )?(--[a-z][\w-]*)/gm)].map(([, long]) => long);
    expect(new Set(listed)).toEqual(new Set(command.options.map(({ long }) => long)));
  });

  test('its examples use options that it has', () => {
    const known = new Set(command.options.map(({ long }) => long));
    const used = command.examples
      .filter(({ line }) => line.includes(path))
      // What follows `--` belongs to another program, and so does what follows a pipe.
      .map(({ line }) => line.slice(line.indexOf(path)).split(/ -- | [|;&] /)[0]!)
      // The example of a group may be one of its subcommands.
      .filter((line) => !command.commands.some(({ path: below }) => line.startsWith(below)))
      .flatMap((line) => line.match(/(?<= )--[a-z][\w-]*/g) ?? []);
    const unknown = passesOn.test(path) ? [] : used.filter((long) => !known.has(long));
    expect(unknown).toEqual([]);
  });

  test('no escape bytes without a terminal, nor with NO_COLOR on one', async () => {
    for (const words of [
      [...wordsOf(command), '--help'],
      [...wordsOf(command), '--no-such-flag'],
    ]) {
      // git and the program of `ctl check` would run.
      if (passesOn.test(path) && words.at(-1) !== '--help') continue;
      const piped = await ctl(words);
      expect(piped.out + piped.err).not.toContain('\u001B');
      const plain = await ctl(words, { isTTY: true, env: { NO_COLOR: '1' } });
      expect(plain.out + plain.err).not.toContain('\u001B');
    }
  });
});

test('a terminal gets colours, so the table above can fail', async () => {
  expect((await ctl(['queue', '--help'], { isTTY: true })).out).toContain('\u001B');
});

describe.each(some)('%s', (path, command) => {
  const valued = command.options.filter(
    ({ value, long }) =>
      value !== null &&
      parsed.get(path)!.options.some((each) => each.long === long && each.required),
  );

  test('an option without its value is exit code 2 and names it', async () => {
    for (const { long } of valued) {
      const { code, out, err } = await ctl([...wordsOf(command), long]);
      expect({ long, code, out }).toEqual({ long, code: 2, out: '' });
      expect(err).toContain(`${long} `);
      expect(err).toContain('argument missing');
    }
  });

  test('an option of fixed choices refuses others and lists them', async () => {
    for (const { long, choices } of command.options.filter((each) => each.choices.length > 0)) {
      const { code, err } = await ctl([...wordsOf(command), long, 'no-such-choice']);
      expect({ long, code }).toEqual({ long, code: 2 });
      for (const choice of choices) expect(err).toContain(choice);
    }
  });

  test('a mistyped option gets a suggestion', async () => {
    for (const { long } of command.options.filter((each) => each.long.length > 6).slice(0, tried)) {
      const { code, err } = await ctl([...wordsOf(command), long.slice(0, -1)]);
      expect({ long, code }).toEqual({ long, code: 2 });
      // A missing option is reported before an unknown one.
      expect(err).toMatch(/Did you mean .*--|required option|missing required argument/);
    }
  });
});

test.each(groups)('%s: a mistyped subcommand gets a suggestion', async (_path, group) => {
  for (const { name } of group.commands.filter((each) => each.name.length > 3)) {
    const { code, out, err } = await ctl([...wordsOf(group), `${name}x`]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(new RegExp(`did you mean "?${name}"?\\?`, 'i'));
  }
});

test('a mistyped group gets a suggestion', async () => {
  const { code, err } = await ctl(['statsu']);
  expect([code, err]).toEqual([2, expect.stringContaining('Did you mean status?')]);
});

const listing = /^ctl( .*)? (status|list|questions|tasks|workers|groups|branches|stats)$/;
/** Views that are no list by name. */
const views = [
  'ctl usage',
  'ctl usage spend',
  'ctl usage savings',
  'ctl usage insights',
  'ctl cost',
  'ctl cost usage spend',
  'ctl cost usage savings',
  'ctl inbox',
];

test.each(own.filter(([path]) => listing.test(path) || views.includes(path)))(
  '%s: takes --watch, --interval and -o',
  async (_path, command) => {
    const longs = command.options.map(({ long }) => long);
    expect(longs).toEqual(expect.arrayContaining(['--watch', '--interval', '--output-format']));
    const { choices } = command.options.find(({ long }) => long === '--output-format')!;
    expect(choices).toEqual(['table', 'json', 'yaml', 'csv', 'name']);
    const { code, err } = await ctl([...wordsOf(command), '-o', 'xml']);
    expect([code, err]).toEqual([2, expect.stringContaining('table, json, yaml, csv, name')]);
  },
);
