import { execFile } from 'node:child_process';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  campaignFiles,
  campaignTags,
  isInCampaign,
  testFiles,
  wholeFiles,
} from '../scripts/campaign-tests.mjs';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..');

describe.each(['agents', 'crash', 'failover', 'release', 'simulate', 'soak'])('%s', (name) => {
  const script = join(root, 'scripts', `${name}.mjs`);

  test('--help lists its options', async () => {
    const { stdout, stderr } = await run(process.execPath, [script, '--help']);
    expect(stdout).toMatch(new RegExp(`^usage: npm run ${name} -- `));
    expect(stdout).toContain('--help ');
    expect(stderr).toBe('');
  });

  test('refuses an unknown option and names the help', async () => {
    const failed = run(process.execPath, [script, '--nope']);
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^Unknown option '--nope'.*\nSee: npm run .* -- --help\n$/),
    });
  });
});

test.each(['queue-workers --rounds 0', '--seed x', 'nothing', '--store postgres'])(
  'crash: refuses %s',
  async (args) => {
    const script = join(root, 'scripts', 'crash.mjs');
    const failed = run(process.execPath, [script, ...args.split(' ')]);
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('npm run crash -- --help'),
    });
  },
);

describe('tests in two sizes', () => {
  /** Files of which `npm test` runs nothing, or not all, and `npm run test:campaigns` not either. */
  function lost(files: readonly string[], quick: readonly string[], full: readonly string[]) {
    return files.filter((file) => !quick.includes(file) && !full.includes(file));
  }

  async function filesOf(campaign: string): Promise<string[]> {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const { stdout } = await run(process.execPath, [vitest, 'list', '--filesOnly', '--json'], {
      cwd: root,
      env: { ...process.env, MILLRACE_CAMPAIGN: campaign },
      maxBuffer: 2 ** 24,
    });
    const files = JSON.parse(stdout) as { file: string }[];
    return files.map(({ file }) => relative(root, file).replaceAll('\\', '/'));
  }

  test('every test file is run by npm test or by npm run test:campaigns', async () => {
    const [quick, all] = [await filesOf(''), await filesOf('full')];
    const full = campaignFiles().filter((file) => all.includes(file));
    expect(testFiles().length).toBeGreaterThan(700);
    expect(lost(testFiles(), quick, full)).toEqual([]);
    expect(all.toSorted()).toEqual(testFiles().toSorted());
    const left = all.filter((file) => !quick.includes(file));
    expect(left.toSorted()).toEqual(
      wholeFiles()
        .map(({ file }) => file)
        .toSorted(),
    );
    // A file in neither is found.
    expect(lost([...testFiles(), 'soak/a.test.ts'], quick, full)).toEqual(['soak/a.test.ts']);
  });

  test('a whole file names its reason', () => {
    const reasons = wholeFiles().map(({ tag }) => tag);
    expect(reasons.length).toBeGreaterThan(4);
    expect(reasons.filter((tag) => !tag || !(tag in campaignTags))).toEqual([]);
  });

  test('a file that leaves something out is found, however it does', () => {
    const isFound = (text: string, file = 'test/a.test.ts') => isInCampaign(file, text);
    expect(isFound("import { expect } from 'vitest';\n")).toBe(false);
    expect(isFound('', 'test/a.campaign.test.ts')).toBe(true);
    expect(isFound("import { campaignSize } from './support/campaign.js';\n")).toBe(true);
    expect(isFound(`test('a', { tags: '${Object.keys(campaignTags)[0]}' }, run);\n`)).toBe(true);
    expect(isFound("import { testOptionsOf } from './support/pages.js';\n")).toBe(true);
  });
});
