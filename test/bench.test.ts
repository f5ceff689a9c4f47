import { execFile, execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { isFullCampaign } from './support/campaign.js';

const root = join(import.meta.dirname, '..');
const run = promisify(execFile);

/** The shortest run of each benchmark, without peers, and the programs it needs. */
const shortest: Record<string, { args: string[]; programs?: string[] }> = {
  attacks: { args: ['--rounds', '1', '--seconds', '1', '--attack', 'db-unread'] },
  daemon: {
    args: '--rounds 1 --seconds 1 --idle 1 --sessions 6 --live 2 --files 20 --gigabytes 0.002'.split(
      ' ',
    ),
  },
  dashboard: { args: ['--rows', '100', '--rounds', '1'] },
  'db-client': {
    args: ['--rounds', '1', '--seconds', '0.3', '--records', '1000', '--peers', ''],
  },
  'db-server': {
    args: ['--rounds', '1', '--seconds', '0.3', '--records', '1000', '--peers', ''],
    programs: ['h2load', 'wrk'],
  },
  engine: {
    args: ['--quick', '--engines', 'millrace', '--records', '20000', '--window', '50'],
  },
  flows: {
    args: '--rounds 1 --flows 2 --steps 2 --samples 2 --children 3 --contestants remote'.split(' '),
  },
  growth: {
    args: ['--records', '1000,5000', '--queues', '1,3', '--tasks', '2000', '--count', '50'],
  },
  lists: { args: ['--tasks', '2000', '--embedded-tasks', '2000', '--samples', '1'] },
  queue: {
    args: ['--rounds', '1', '--seconds', '0.3', '--backlog', '2000', '--peers', ''],
    programs: ['wrk'],
  },
  'queue-postgres': {
    args: [
      '--rounds',
      '1',
      '--tasks',
      '1000',
      '--warm-up',
      '0',
      '--backlog',
      '20000',
      '--snapshot-minutes',
      '0',
      '--peers',
      '',
    ],
  },
  replication: { args: ['--rounds', '1', '--seconds', '0.3'] },
  sdks: { args: ['--tasks', '50', '--rounds', '1'], programs: ['python3', 'go'] },
  search: { args: ['--documents', '300', '--dims', '8', '--samples', '2', '--truths', '1'] },
  // This build stands for the older one.
  start: { args: ['--rounds', '1', '--old', root] },
  transcripts: { args: ['--rounds', '1', '--megabytes', '5'] },
  transport: { args: ['--rounds', '1', '--seconds', '0.3'], programs: ['h2load'] },
  workers: {
    // This build stands for the older one.
    args: ['--rounds', '1', '--seconds', '0.3', '--backlog', '1000', '--postgres', '--old', root],
  },
};

function isMissing(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
}

/** No figure is judged here: a benchmark must run to its end on the code of today. */
describe('benchmarks run', () => {
  test('each has a shortest run', () => {
    const files = readdirSync(join(root, 'bench')).filter((file) => file.endsWith('.mjs'));
    expect(files.map((file) => file.slice(0, -4)).toSorted()).toEqual(
      Object.keys(shortest).toSorted(),
    );
  });

  test('each lists its options with --help and refuses an unknown one', async () => {
    const source = `
      const found = {};
      for (const name of ${JSON.stringify(Object.keys(shortest))}) {
        const bench = await import('./bench/' + name + '.mjs');
        const notes = [];
        const parts = { root: process.cwd(), machine: '', report() {}, note: (text) => notes.push(text) };
        if (bench.options) notes.push(...Object.keys(bench.options).map((option) => '--' + option));
        else await bench.run({ ...parts, args: ['--help'] });
        const code = await bench.run({ ...parts, args: ['--no-such-option'] }).catch((error) => error.code);
        found[name] = { help: notes.join('\\n'), code };
      }
      console.log(JSON.stringify(found));
      process.exit();`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', source], {
      cwd: root,
    });
    const found = JSON.parse(stdout) as Record<string, { help: string; code: string }>;
    for (const [name, { args }] of Object.entries(shortest)) {
      expect(found[name]!.help, name).toContain(args[0]);
      expect(found[name]!.code, name).toBe('ERR_PARSE_ARGS_UNKNOWN_OPTION');
    }
  });

  // One with `options`, and one with a help text of its own.
  const asProcess = { tags: 'campaign-process' };
  test.each(['transport', 'workers'])('%s: --help as a command', asProcess, async (name) => {
    const args = [join(root, 'scripts', 'bench.mjs'), name];
    const env = { ...process.env, MILLRACE_BENCH_BUILT: '1' };
    const { stdout, stderr } = await run(process.execPath, [...args, '--help'], { env });
    expect(stderr).toBe('');
    const [option] = shortest[name]!.args;
    expect(stdout).toMatch(/usage|options/i);
    expect(stdout).toContain(option);
    expect(stdout).not.toMatch(/^Node v/);
    const slip = run(process.execPath, [...args, '--no-such-option'], { env });
    await expect(slip).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`npm run bench -- ${name} --help`),
    });
  });

  const runs = [
    ...Object.entries(shortest).map(([name, each]) => ({ name, note: '', ...each })),
    {
      name: 'db-server',
      args: ['--trace', '--calls', '20'],
      note: ' trace of an insert',
    },
    // This build stands for the older one.
    {
      name: 'queue',
      args: ['--rounds', '1', '--seconds', '0.3', '--old', root],
      programs: ['wrk'],
      note: ' beside an older build',
    },
  ];
  // One shows that the harness works; `npm run test:campaigns` runs them all.
  const chosen = runs.filter(({ name }) => isFullCampaign || name === 'transcripts');
  for (const { name, args, programs = [], note } of chosen) {
    const missing = programs.filter(isMissing);
    const needs = missing.length > 0 ? ` (needs ${missing.join(', ')})` : '';
    const title = `${name}${note}${needs}`;
    test.skipIf(missing.length > 0)(title, { timeout: 600_000 }, async ({ skip }) => {
      const { stdout } = await run(
        process.execPath,
        [join(root, 'scripts', 'bench.mjs'), name, ...args],
        { cwd: root, env: { ...process.env, MILLRACE_BENCH_BUILT: '1' }, maxBuffer: 2 ** 26 },
      );
      if (stdout.includes('Not measured')) skip('no Chromium was found');
      expect(stdout).toContain('│');
    });
  }
});
