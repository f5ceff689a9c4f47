import { existsSync } from 'node:fs';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { noTmux, spawn } from '../../daemon/test/support/sessions.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Fleet } from './support/fleet.js';

const again = inCampaign('browser');

type Session = DaemonSchema<'Session'>;

let fleet: Fleet;
const agents: Record<string, Session> = {};

beforeAll(async () => {
  fleet = await Fleet.start({
    hasHistory: true,
    flags: { 'tokens-auto-compact': 'off', 'tokens-guard': 'on' },
  });
  const { api } = fleet.daemon;
  const start = async (name: string, prompt: string, more: object = {}) => {
    const body = { prompt, name, backend: 'claude', cwd: fleet.workdir, ...more };
    agents[name] = await spawn(api, body);
    return agents[name].id;
  };
  const driver = noTmux ? 'headless' : 'tmux';
  const done = await start('write release notes', 'say The notes are in.', { driver: 'headless' });
  const failed = await start('port the parser', 'crash 3', { driver: 'headless' });
  await fleet.until(done, 'done');
  await fleet.until(failed, 'errored');
  const idle = await start('migrate the tables', 'context 250k', { driver });
  const busy = await start('fix the flaky search test', 'sleep 900', { driver });
  if (!noTmux) {
    const asking = await start('tidy the snapshots', 'ask "May I delete the old snapshots?"');
    await fleet.until(asking, 'waiting_for_input');
    await fleet.until(idle, 'idle');
  }
  await fleet.until(busy, 'working');
}, 240_000);
afterAll(() => fleet?.stop());
beforeEach(({ skip }) => skip(fleet.browser === undefined, missingBrowser));

describe('fleet', () => {
  test('shows each agent with status, reason, context and cost', async () => {
    await fleet.on('/', async (page) => {
      const row = (name: string) => page.getByRole('row').filter({ hasText: name });
      await row('write release notes').getByText('done').last().waitFor();
      await row('port the parser').getByText('errored').last().waitFor();
      await row('fix the flaky search test').getByText('working').last().waitFor();
      await row('fix the flaky search test').getByLabel('Context unknown').waitFor();
      await row('migrate the tables').getByText(/^\$\d/).waitFor();
      await page.getByRole('columnheader', { name: 'Why' }).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
    });
  });

  again('search and status filter', async () => {
    await fleet.on('/', async (page) => {
      const names = page.getByRole('row').getByRole('link');
      await page.getByLabel('Search agents').fill('parser');
      await eventually(async () =>
        expect(await names.allTextContents()).toEqual(['port the parser']),
      );
      await page.getByLabel('Search agents').fill('nothing like it');
      await page.getByText('No agent matches the search.').waitFor();
      await page.getByRole('button', { name: 'Show all' }).click();
      await page.getByRole('button', { name: /^Done/ }).click();
      await eventually(async () =>
        expect(await names.allTextContents()).toEqual(['write release notes']),
      );
    });
  });

  again('opens an agent by click and by keyboard', async () => {
    await fleet.on('/', async (page) => {
      await page.getByRole('link', { name: 'port the parser' }).click();
      await page.getByRole('heading', { name: 'port the parser', level: 1 }).waitFor();
      expect(page.url()).toBe(`${fleet.daemon.url}/#/agents/${agents['port the parser']!.id}`);
      await page.keyboard.press('g');
      await page.keyboard.press('f');
      await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor();
      await page.getByRole('link', { name: 'port the parser' }).waitFor();
      await page.keyboard.press('j');
      await page.keyboard.press('j');
      await page.keyboard.press('k');
      await page.keyboard.press('Enter');
      await page.getByRole('link', { name: 'Fleet', exact: true }).first().waitFor();
      await page.getByRole('log', { name: 'Output' }).waitFor();
    });
  });

  again('shows start and end of an agent started elsewhere', async () => {
    const { api } = fleet.daemon;
    await fleet.on('/', async (page) => {
      await page.getByText('Live', { exact: true }).waitFor();
      const body = { prompt: 'sleep 1', name: 'newcomer', backend: 'claude', driver: 'headless' };
      const { id } = await spawn(api, { ...body, cwd: fleet.workdir });
      const row = page.getByRole('row').filter({ hasText: 'newcomer' });
      await row.getByText('done').last().waitFor();
      await api.ok('DELETE', `/api/v1/sessions/${id}`);
      await row.waitFor({ state: 'detached' });
    });
  });

  test('starts an agent', async () => {
    const { api } = fleet.daemon;
    await fleet.on('/', async (page) => {
      await page.getByRole('button', { name: 'New agent' }).click();
      await page.getByLabel('Prompt').fill('say hello from the dashboard');
      await page.getByLabel('Backend').selectOption('claude');
      await page.getByLabel('Name').fill('made in the browser');
      await page.getByLabel('Repository').fill(fleet.repo);
      await page.getByLabel('Branch').fill('from-the-dashboard');
      await page.getByLabel('Driver').selectOption('headless');
      await page.getByRole('button', { name: 'Start agent' }).click();
      await page.getByRole('heading', { name: 'made in the browser', level: 1 }).waitFor();
      await page.getByText('hello from the dashboard').first().waitFor();
    });
    const { sessions } = await api.ok('GET', '/api/v1/sessions');
    const made = (sessions as Session[]).find(({ name }) => name === 'made in the browser')!;
    expect(made).toMatchObject({
      branch: 'from-the-dashboard',
      driver: 'headless',
      prompt: 'say hello from the dashboard',
    });
    expect(existsSync(made.worktree!)).toBe(true);
  });

  again('shows why an agent cannot be started', async () => {
    const refused = /status of 400/;
    await fleet.on(
      '/',
      async (page) => {
        await page.getByRole('button', { name: 'New agent' }).waitFor();
        await page.keyboard.press('n');
        // The prompt has the focus after the dialog was opened by a key.
        await page.getByRole('dialog').waitFor();
        await page.keyboard.type('x');
        expect(await page.getByLabel('Prompt').inputValue()).toBe('x');
        await page.getByLabel('Backend').selectOption('claude');
        await page.getByLabel('Repository').fill('/nowhere/at/all');
        await page.getByRole('button', { name: 'Start agent' }).click();
        const problem = page.getByRole('dialog').getByRole('alert');
        expect(await problem.textContent()).toMatch(/repo.* does not exist/);
        await page.getByRole('button', { name: 'Cancel' }).click();
      },
      { allowedErrors: refused },
    );
  });
});

describe('fleet and agent', () => {
  again.each(appearancesOf(import.meta.url))(
    'accessible at $width in $theme',
    async (appearance) => {
      await fleet.on(
        '/',
        async (page, watched) => {
          await page.getByRole('link', { name: 'port the parser' }).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('fleet');
          const name = noTmux ? 'port the parser' : 'tidy the snapshots';
          await page.getByRole('link', { name }).click();
          await page.getByRole('heading', { name, level: 1 }).waitFor();
          await page.getByRole('log', { name: 'Output' }).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('agent');
        },
        appearance,
      );
    },
  );
});

/** The output may be requested once more while the session is deleted. */
const mayBeGone = { allowedErrors: /status of 404/ };

describe.skipIf(noTmux)(`an agent${noTmux ? ` (${noTmux})` : ''}`, () => {
  const at = (name: string) => `/agents/${agents[name]!.id}`;

  test('gets an answer and shows its output', async () => {
    await fleet.on(at('tidy the snapshots'), async (page) => {
      const output = page.getByRole('log', { name: 'Output' });
      await output.getByText('May I delete the old snapshots?').first().waitFor();
      await page.getByLabel('Message to the agent').fill('1');
      await page.keyboard.press('Enter');
      await page.getByText('Sent.', { exact: true }).waitFor();
      await fleet.until(agents['tidy the snapshots']!.id, 'idle');
      await page.locator('.agent-status').getByText('idle').waitFor();
      await page.getByLabel('Message to the agent').fill('say The coast is clear.');
      await page.getByRole('button', { name: 'Send' }).click();
      await output.getByText('The coast is clear.').last().waitFor();
    });
  });

  again('is explained from its record and by the local model', async () => {
    await fleet.on(at('migrate the tables'), async (page) => {
      const panel = page.getByRole('region', { name: 'Explain' });
      await panel.getByText('Why idle?').waitFor();
      await panel.getByText(/250,\d{3} tokens \(warning\)/).waitFor();
      await panel.getByRole('button', { name: 'Ask a free or local model' }).click();
      await panel.getByText('It waits for a person to allow a deletion.').waitFor();
      await panel.getByText('by local').waitFor();
    });
  });

  again('overrides forced compaction', async () => {
    const { api } = fleet.daemon;
    const { id } = agents['migrate the tables']!;
    await fleet.on(at('migrate the tables'), async (page) => {
      await page.getByLabel('Forced compaction').selectOption('on');
      await page.getByText('Forced compaction is on for this agent.').waitFor();
      expect((await api.ok('GET', `/api/v1/sessions/${id}`)).force_compact).toBe('on');
      await page.getByText(/it is interrupted, compacted/).waitFor();
      await page.getByLabel('Forced compaction').selectOption('inherit');
      await page.getByText('Forced compaction is off for this agent.').waitFor();
    });
    expect((await api.ok('GET', `/api/v1/sessions/${id}`)).force_compact).toBe('inherit');
  });

  test('is stopped after a confirmation, restarted and deleted', async () => {
    const { api } = fleet.daemon;
    const body = { prompt: 'sleep 900', name: 'short-lived', backend: 'claude' };
    const { id } = await spawn(api, { ...body, cwd: fleet.workdir });
    await fleet.until(id, 'working');
    await fleet.on(
      `/agents/${id}`,
      async (page) => {
        await page.getByRole('button', { name: 'Stop', exact: true }).click();
        await page.getByRole('button', { name: 'Cancel' }).click();
        expect((await api.ok('GET', `/api/v1/sessions/${id}`)).status).toBe('working');
        await page.getByRole('button', { name: 'Stop', exact: true }).click();
        await page.getByRole('button', { name: 'Stop agent' }).click();
        await page.getByText('Stopped.', { exact: true }).waitFor();
        expect((await api.ok('GET', `/api/v1/sessions/${id}`)).status).toBe('done');
        await page.getByText('The agent has ended. Restart it to send a message.').waitFor();
        await page.getByRole('button', { name: 'Restart' }).click();
        await page.getByText('Restarted.', { exact: true }).waitFor();
        expect((await api.ok('GET', `/api/v1/sessions/${id}`)).restart_count).toBe(1);
        await page.getByRole('button', { name: 'Delete' }).click();
        await page.getByRole('button', { name: 'Delete session' }).click();
        await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor();
      },
      mayBeGone,
    );
    await api.refused({ path: `/api/v1/sessions/${id}` }, 404, 'SESSION_NOT_FOUND');
  });
});

again('an unknown agent: the page says that it does not exist', async () => {
  await fleet.on(
    '/agents/nobody',
    async (page) => {
      await page.getByText('This agent does not exist.').waitFor();
    },
    { allowedErrors: /status of 404/ },
  );
});

test.skipIf(noTmux)(
  'the new agent dialog is accessible',
  { tags: 'campaign-browser' },
  async () => {
    await fleet.on('/', async (page, watched) => {
      await page.getByRole('button', { name: 'New agent' }).click();
      await page.getByLabel('Prompt').waitFor();
      await watched.expectAccessible();
      await page.keyboard.press('Escape');
      await page.getByLabel('Prompt').waitFor({ state: 'detached' });
    });
  },
);
