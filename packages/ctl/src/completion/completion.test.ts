import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Argument, Option } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isInstalled, shells, type Complete } from '../../test/shells.js';
import { CtlCommand } from '../base/command.js';
import { shapeOf, type CommandShape } from '../base/shape.js';
import { bashScript } from './bash.js';
import { fishScript } from './fish.js';
import { zshScript } from './zsh.js';

const scripts: Record<string, (root: CommandShape) => string> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** A command line with one of everything that completion must cope with. */
function sample(): CommandShape {
  const root = new CtlCommand('ctl').option('--json', "JSON: [it's] all");
  root.command('help').description('Help').argument('[command...]', 'the command');
  const db = root.command('db').description("The database's commands");
  db.command('serve')
    .description('Serve')
    .option('-d, --data <dir>', 'the data: where')
    .option('--config <file>', 'settings')
    .option('--listen <address>', 'where')
    .addOption(new Option('--role <role>', 'role').choices(['leader', 'follower']));
  db.command('restore').description('Restore').argument('<file>', 'the backup');
  const backend = root.command('backend').description('Backends');
  backend.command('list').alias('ls').description('List');
  backend
    .command('tier')
    .description('Tier')
    .argument('<id>', 'which')
    .addArgument(new Argument('<tier>', 'tier').choices(['free', 'subscription']));
  return shapeOf(root);
}

describe.each(Object.keys(scripts))('%s', (shell) => {
  const missing = isInstalled(shell) ? '' : `${shell} is not installed`;
  let folder = '';
  let complete: Complete;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ctl-completion-'));
    await mkdir(join(folder, 'here', 'two words'), { recursive: true });
    await writeFile(join(folder, 'here', 'backup.bin'), '');
    const make = shells[shell];
    const script = scripts[shell];
    if (!make || !script) throw new Error(`no harness for ${shell}`);
    if (missing === '') complete = await make(script(sample()), folder);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const cases: readonly [what: string, line: string, offers: readonly string[]][] = [
    ['groups', 'ctl ', ['backend', 'db', 'help']],
    ['a group that has begun', 'ctl ba', ['backend']],
    ['subcommands', 'ctl db ', ['restore', 'serve']],
    ['aliases beside names', 'ctl backend l', ['list', 'ls']],
    [
      'flags, also those of the root',
      'ctl db serve --',
      ['--config', '--data', '--help', '--json', '--listen', '--role'],
    ],
    ['the choices of an option', 'ctl db serve --role ', ['follower', 'leader']],
    ['the choices of an option after =', 'ctl db serve --role=f', ['follower']],
    ['subcommands after a flag', 'ctl --json db r', ['restore']],
    ['the choices of the second argument', 'ctl backend tier claude ', ['free', 'subscription']],
    ['commands after help', 'ctl help d', ['db']],
    ['subcommands after help', 'ctl help db s', ['serve']],
    ['nothing for a word it does not know', 'ctl nonsense b', []],
    ['nothing for a value it cannot guess', 'ctl db serve --listen ', []],
    ['an option after the value of another', 'ctl db serve -d x --ro', ['--role']],
  ];
  test.for(cases)('offers %s', async ([, line, offers], { skip }) => {
    skip(missing !== '', missing);
    const offered = (await complete(line)).map((offer) => offer.replace(/^--role=|=$/, ''));
    expect(offered).toEqual(offers);
  });

  test('offers directories alone for a directory, with blanks in their names', async ({ skip }) => {
    skip(missing !== '', missing);
    expect((await complete('ctl db serve --data here/')).map(lastName)).toEqual(['two words']);
  });

  test('offers files for a file', async ({ skip }) => {
    skip(missing !== '', missing);
    expect((await complete('ctl db restore here/b')).map(lastName)).toEqual(['backup.bin']);
    const forOption = await complete('ctl db serve --config here/b');
    expect(forOption.map(lastName)).toEqual(['backup.bin']);
  });
});

function lastName(path: string): string {
  return path.replaceAll('\\', '').replace(/\/$/, '').split('/').at(-1) ?? '';
}
