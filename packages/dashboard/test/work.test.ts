import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { spawn } from '../../daemon/test/support/sessions.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Fleet } from './support/fleet.js';

const again = inCampaign('browser');

type Pipeline = DaemonSchema<'Pipeline'>;

let fleet: Fleet;

const definition = {
  name: 'Release 2.4',
  start: false,
  jobs: [
    { id: 'plan', prompt: 'say The plan stands.' },
    { id: 'backend', prompt: 'say Built.', depends_on: ['plan'] },
    { id: 'frontend', prompt: 'say Drawn.', depends_on: ['plan'] },
    { id: 'ship', prompt: 'sleep 900', depends_on: ['backend', 'frontend'] },
    { id: 'tell', prompt: 'say Failed.', depends_on: ['ship'], run_if: 'failure' },
  ],
};

beforeAll(async () => {
  fleet = await Fleet.start({ flags: { 'notify-enabled': 'off' } });
  const { api } = fleet.daemon;
  await api.ok('PUT', '/api/v1/backends/default', { id: 'claude' });
  for (const [name, branch] of [
    ['retry the upload', 'retry-upload'],
    ['write the guide', 'guide'],
  ]) {
    const { id } = await spawn(api, {
      prompt: 'write notes.txt, then commit',
      name,
      backend: 'claude',
      driver: 'headless',
      repo: fleet.repo,
      branch,
    });
    await fleet.until(id, 'done');
  }
  const failing = { prompt: 'crash 3', name: 'port the parser', backend: 'claude' };
  const { id } = await spawn(api, { ...failing, driver: 'headless', cwd: fleet.workdir });
  await fleet.until(id, 'errored');
  await api.ok('GET', '/api/v1/collab/branches?refresh=true');
}, 240_000);
afterAll(() => fleet?.stop());
beforeEach(({ skip }) => skip(fleet.browser === undefined, missingBrowser));

const pipelines = async (): Promise<Pipeline[]> =>
  (await fleet.daemon.api.ok('GET', '/api/v1/pipelines')).pipelines;

describe('pipelines', () => {
  test('create: an invalid definition shows its error, a valid one its graph', async () => {
    await fleet.on(
      '/pipelines',
      async (page) => {
        await page.getByText('No pipelines yet.').waitFor();
        await page.getByRole('button', { name: 'New pipeline' }).click();
        const text = page.getByLabel('Definition');
        await text.fill('name: x\njobs:\n  - {id: a, prompt: p, depends_on: [b]}\n');
        await page.getByRole('button', { name: 'Create pipeline' }).click();
        await page.getByRole('dialog').getByRole('alert').waitFor();
        await text.fill(JSON.stringify({ ...definition, repo: fleet.repo }));
        await page.getByRole('button', { name: 'Create pipeline' }).click();
        await page.getByRole('heading', { name: 'Release 2.4' }).waitFor();
        const graph = page.getByRole('group', { name: 'Jobs and their dependencies' });
        expect(await graph.getByRole('button').count()).toBe(5);
        const lines = await graph.locator('path').first().getAttribute('d');
        expect(lines!.match(/M/g)).toHaveLength(5);
        const place = async (name: string) =>
          (await graph.getByRole('button', { name: new RegExp(`^${name}`) }).boundingBox())!;
        expect((await place('backend')).x).toBeGreaterThan((await place('plan')).x);
        expect((await place('frontend')).x).toBe((await place('backend')).x);
        expect((await place('ship')).x).toBeGreaterThan((await place('frontend')).x);
      },
      { allowedErrors: /status of 400/ },
    );
    expect(await pipelines()).toMatchObject([{ name: 'Release 2.4', status: 'pending' }]);
  });

  again('start, follow the jobs, cancel', async () => {
    const [{ id }] = (await pipelines()) as [Pipeline];
    await fleet.on(`/pipelines/${id}`, async (page) => {
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      await page.getByText('Started Release 2.4.').waitFor();
      await page.getByRole('button', { name: /^ship\W*running/ }).waitFor();
      await page.getByRole('button', { name: /^plan\W*done/ }).click();
      const job = page.getByRole('region', { name: 'Job plan' });
      await job.getByText('The plan stands.').last().waitFor();
      await job.getByRole('link', { name: 'Open agent' }).click();
      await page.getByRole('link', { name: 'job plan' }).click();
      await page.getByRole('button', { name: 'Cancel pipeline' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel pipeline' }).click();
      await page.getByText('Canceled Release 2.4.').waitFor();
      expect(await pipelines()).toMatchObject([{ id, status: 'canceled' }]);
      await page.getByRole('button', { name: /^ship/ }).waitFor();
    });
  });
});

describe('plans', () => {
  test('create: a person completes the task of a plan', async () => {
    const tasks = [
      { key: 'look', title: 'Look at it', assignee: 'person' },
      { key: 'sign', title: 'Sign it', assignee: 'person', depends_on: ['look'] },
    ];
    await fleet.on('/plans', async (page) => {
      await page.getByText('No plans yet.').waitFor();
      await page.getByRole('button', { name: 'New plan' }).click();
      await page.getByLabel('Definition').fill(JSON.stringify({ title: 'Review', tasks }));
      await page.getByRole('button', { name: 'Create plan' }).click();
      const graph = page.getByRole('group', { name: 'Tasks and their dependencies' });
      await graph.getByRole('button', { name: /^look\W*ready/ }).click();
      await page.getByRole('button', { name: 'Complete task' }).click();
      await page.getByLabel('Result').fill('Fine.');
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Complete task' }).click();
      await page.getByText('Completed look.').waitFor();
      await graph.getByRole('button', { name: /^sign\W*ready/ }).waitFor();
      await page.getByText('1/2').waitFor();
    });
    const { plans } = await fleet.daemon.api.ok('GET', '/api/v1/plans');
    expect(plans).toMatchObject([{ tasks: [{ status: 'done', result: 'Fine.' }, {}] }]);
  });

  again('a race side by side: pick one, answer the merge question, see it done', async () => {
    const tasks = [
      {
        key: 'upload',
        title: 'Retry uploads',
        prompt: 'write upload.txt',
        race: ['claude', 'claude'],
        verify: 'test -f upload.txt',
        merge: 'ask',
      },
      { key: 'look', title: 'Look at it', assignee: 'person', depends_on: ['upload'] },
    ];
    await fleet.on('/plans', async (page) => {
      await page.getByRole('button', { name: 'New plan' }).click();
      const text = JSON.stringify({ title: 'Uploads', repo: fleet.repo, tasks });
      await page.getByLabel('Definition').fill(text);
      await page.getByRole('button', { name: 'Create plan' }).click();
      const race = page.getByRole('group', { name: 'Race of upload' });
      await race.getByRole('button', { name: 'Pick 2' }).waitFor();
      expect(await race.getByText('1 files, +1 −0').count()).toBe(2);
      expect(await race.getByText('passed').count()).toBe(2);
      await race.getByText('Written by the fake agent.').first().waitFor();
      for (const appearance of appearancesOf(import.meta.url)) {
        await fleet.on(
          '/plans',
          async (other, watched) => {
            await other.getByRole('button', { name: 'Pick 1' }).waitFor();
            await watched.expectAccessible();
            await watched.screenshot('plans');
          },
          appearance,
        );
      }
      await race.getByRole('button', { name: 'Pick 2' }).click();
      await page.getByText('Picked for upload.').waitFor();
      await page.getByRole('button', { name: 'Yes, merge it' }).click();
      const graph = page.getByRole('group', { name: 'Tasks and their dependencies' });
      await graph.getByRole('button', { name: /^look\W*ready/ }).click();
      await page.getByRole('button', { name: 'Complete task' }).click();
      await page.getByLabel('Result').fill('Fine.');
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Complete task' }).click();
      await page.getByText('Completed look.').waitFor();
      await page.getByText('2/2').waitFor();
    });
    const { plans } = await fleet.daemon.api.ok('GET', '/api/v1/plans');
    const made = plans.find(({ title }: { title: string }) => title === 'Uploads');
    expect(made).toMatchObject({ status: 'done', tasks: [{ merged: true }, { result: 'Fine.' }] });
  });
});

describe('branches', () => {
  test('shows CI status and distance from the base of each branch', async () => {
    await fleet.on('/branches', async (page) => {
      const row = page.getByRole('row').filter({ hasText: 'retry the upload' });
      await row.getByText('retry-upload').waitFor();
      await row.getByText('failure').waitFor();
      expect(await row.getByRole('cell').nth(2).textContent()).toBe('1');
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.getByText('Branches refreshed.').waitFor();
      await row.getByRole('link', { name: 'retry the upload' }).click();
      await page.getByRole('heading', { name: 'retry the upload', level: 1 }).waitFor();
    });
  });
});

const unread = async (): Promise<DaemonSchema<'InboxNote'>[]> =>
  (await fleet.daemon.api.ok('GET', '/api/v1/inbox?unread=true')).notes;

describe('inbox', () => {
  const open = async (name: 'first' | 'rest') => {
    await eventually(async () => expect((await unread()).length).toBeGreaterThan(1));
    const before = await unread();
    await fleet.on('/inbox', async (page) => {
      const notes = page.getByRole('listitem').filter({ has: page.locator('.note-title') });
      await notes.first().waitFor();
      if (name === 'first') {
        const title = (await notes.first().locator('.note-title').textContent())!;
        await notes.first().getByRole('button', { name: 'Mark read' }).click();
        // Equal notes are one row, and others may arrive meanwhile.
        const ids = new Set(before.map(({ id }) => id));
        await eventually(async () => {
          const left = (await unread()).filter(({ id }) => ids.has(id));
          expect(left.length).toBeLessThan(before.length);
        });
        expect(before.map((note) => note.title)).toContain(title);
      } else {
        await page.getByRole('button', { name: 'Mark all read' }).click();
        await page.getByText('No unread notes.').waitFor();
        expect(await unread()).toEqual([]);
        await page.getByRole('button', { name: 'All', exact: true }).click();
        await notes.first().waitFor();
      }
    });
  };

  test('shows the failed agent and marks one note as read', async () => {
    await eventually(async () =>
      expect((await unread()).map(({ kind }) => kind)).toContain('errored'),
    );
    await fleet.on('/inbox', async (page) => {
      await page.getByText('port the parser').first().waitFor();
    });
    await open('first');
  });

  again('inbox, branches, pipelines: accessible at every width and theme', async () => {
    for (const appearance of appearancesOf(import.meta.url)) {
      const watched = await fleet.open('/', appearance);
      for (const [name, part] of [
        ['inbox', '.note'],
        ['branches', '.branches'],
        ['pipelines', '.graph'],
      ] as const) {
        await watched.visit(`/${name}`);
        await watched.page.locator(part).first().waitFor();
        await watched.expectAccessible();
        await watched.screenshot(name);
      }
      await watched.close();
    }
  });

  again('marks all notes as read', async () => {
    await spawnFailing();
    await open('rest');
  });
});

async function spawnFailing(): Promise<void> {
  const body = { prompt: 'crash 3', name: 'one more', backend: 'claude', driver: 'headless' };
  const { id } = await spawn(fleet.daemon.api, { ...body, cwd: fleet.workdir });
  await fleet.until(id, 'errored');
}
