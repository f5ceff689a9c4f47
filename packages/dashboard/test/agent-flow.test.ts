import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { installAcpAgent } from '../../daemon/test/support/acp.js';
import { FakeClis } from '../../daemon/test/support/fake-clis.js';
import { gitIn, spawn } from '../../daemon/test/support/sessions.js';
import { missingBrowser } from './browser.js';
import { Fleet } from './support/fleet.js';

const again = inCampaign('browser');

/** Real parts: the daemon, an agent over ACP, and a git repository with a remote. */
let fleet: Fleet;
const pullRequest = 'https://example.test/mill/pull/7';

beforeAll(async () => {
  fleet = await Fleet.start();
  const { home, api } = fleet.daemon;
  await installAcpAgent({ home, api });
  const clis = new FakeClis(join(home, 'bin'));
  clis.add('gh', `console.log(process.argv[2] === 'pr' ? '${pullRequest}' : '[]');`);
}, 240_000);
afterAll(() => fleet?.stop());
beforeEach(({ skip }) => skip(!fleet.browser, missingBrowser));

test('an agent asks, is answered by a button, and its work is reviewed and merged', async () => {
  const { daemon, repo } = fleet;
  const prompt = 'write notes.txt ask "$ make test" say all is well';
  const work = { repo, branch: 'tidy', name: 'tidy the notes' };
  const { id } = await spawn(daemon.api, { prompt, backend: 'gemini', ...work });
  await fleet.until(id, 'waiting_for_input');
  await fleet.on('/?view=board', async (page) => {
    const column = (name: string) => page.getByRole('region', { name, exact: true });
    const card = { name: 'tidy the notes' };
    await column('Needs you').getByRole('link', card).waitFor();
    await column('Needs you').getByText('make test').first().waitFor();
    await column('Needs you').getByRole('button', { name: 'Allow', exact: true }).click();
    await column('Review').getByRole('link', card).click();
    const output = page.getByRole('log', { name: 'Output' });
    await output.getByText('The answer was yes').waitFor();
    await output.getByText('all is well', { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Changes' }).click();
    await page.getByText('1 file +1 −0 since main').waitFor();
    await page
      .getByRole('group', { name: 'Changes' })
      .getByText('made by the fake agent')
      .waitFor();
    const dialog = page.getByRole('dialog');
    const run = async (title: string) => {
      await dialog.getByRole('button', { name: title, exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await page.getByRole('button', { name: 'Commit…' }).click();
    await page.getByLabel('Message').fill('Add notes');
    await run('Commit');
    expect(gitIn(repo, 'log', '-1', '--format=%s', 'tidy')).toBe('Add notes');
    await page.getByRole('button', { name: 'Push…' }).click();
    await run('Push');
    const head = gitIn(repo, 'rev-parse', 'tidy');
    expect(gitIn(repo, 'ls-remote', 'origin', 'refs/heads/tidy')).toContain(head);
    await page.getByRole('button', { name: 'Open pull request…' }).click();
    await dialog.getByRole('button', { name: 'Open pull request' }).click();
    await dialog.getByRole('link', { name: pullRequest }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Merge…' }).click();
    await run('Merge');
    expect(gitIn(repo, 'show', 'main:notes.txt')).toBe('made by the fake agent');
    expect(gitIn(repo, 'branch', '--merged', 'main')).toContain('tidy');

    await page.getByRole('link', { name: 'Fleet' }).first().click();
    await page.getByRole('button', { name: 'Board' }).click();
    await column('Done').getByRole('link', card).waitFor();
  });
});

again('merge: a conflict with the base names its files and changes nothing', async () => {
  const { daemon, repo } = fleet;
  const work = { repo, branch: 'clash', name: 'clash' };
  const { id, worktree } = await spawn(daemon.api, {
    prompt: 'say hi',
    backend: 'gemini',
    ...work,
  });
  await fleet.until(id, 'idle');
  for (const place of [worktree!, repo]) {
    writeFileSync(join(place, 'same.txt'), `${place}\n`);
    gitIn(place, 'add', '.');
    gitIn(place, 'commit', '--quiet', '--message=same');
  }
  const before = gitIn(repo, 'rev-parse', 'main');
  await fleet.on(
    `/agents/${id}?tab=changes`,
    async (page) => {
      await page.getByRole('button', { name: 'Merge…' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Merge', exact: true }).click();
      await dialog.getByRole('list', { name: 'Conflicts' }).getByText('same.txt').waitFor();
      expect(gitIn(repo, 'rev-parse', 'main')).toBe(before);
    },
    { allowedErrors: /status of 409/ },
  );
});
