import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser, widths, type OpenOptions } from './browser.js';
import { FakeAgents } from './support/fake-agents.js';
import { eventually, Rig } from './support/rig.js';

const again = inCampaign('browser');

let rig: Rig;
let agents: FakeAgents;

beforeAll(async () => {
  rig = await Rig.start();
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => {
  skip(rig.browser === undefined, missingBrowser);
  agents = new FakeAgents();
});

const on = (path: string, act: Parameters<Rig['on']>[1], options: OpenOptions = {}) =>
  rig.on(path, act, { prepare: agents.install, ...options });

function seed() {
  const asking = agents.addSession('tidy the snapshots', 'waiting_for_input');
  agents.addSession('port the parser', 'working', { status_reason: 'a tool call is running' });
  agents.addSession('draft the plan', 'spawning');
  const merged = agents.addSession('retry the upload', 'done', {
    branch: 'retry-upload',
    worktree: '/src/mill/.worktrees/retry-upload',
  });
  const open = agents.addSession('write the guide', 'done', {
    branch: 'guide',
    worktree: '/src/mill/.worktrees/guide',
  });
  agents.branches.push(
    { agent_id: merged.id, ahead: 1, merged: true },
    { agent_id: open.id, ahead: 2, merged: false },
  );
  agents.pipelines.push({
    id: 'P1',
    name: 'release',
    status: 'running',
    jobs: [{ id: 'ship', depends_on: ['build'], status: 'pending', session_id: null }],
  });
  return { asking, question: agents.addQuestion(asking) };
}

describe('questions', () => {
  again('fleet: shows why an agent has its status, on a phone too', async () => {
    seed();
    for (const width of [widths.desktop, widths.phone]) {
      await on(
        '/',
        async (page) => {
          const row = (name: string) => page.getByRole('row').filter({ hasText: name });
          await row('port the parser').getByText('a tool call is running').waitFor();
          await row('tidy the snapshots').getByText('Do you want to proceed?').waitFor();
        },
        { width },
      );
    }
  });

  test('agent page: shows the question and sends the chosen option', async () => {
    const { asking } = seed();
    await on(`/agents/${asking.id}`, async (page) => {
      const question = page.getByRole('group', { name: 'Do you want to proceed?' });
      await question.getByText('npm publish --dry-run').waitFor();
      await question.getByRole('button', { name: 'No', exact: true }).click();
      await page.getByText('Answered: No').waitFor();
      await question.waitFor({ state: 'detached' });
    });
    expect(agents.calls).toEqual([{ path: 'questions/Q0:answer', body: { option_id: '3' } }]);
  });

  again('inbox: a question of kind text takes words', async () => {
    const { question, asking } = seed();
    Object.assign(question, { kind: 'text', options: [], title: 'Which database?' });
    await on('/inbox', async (page) => {
      await page.getByRole('link', { name: asking.name }).waitFor();
      const answer = page.getByRole('button', { name: 'Answer', exact: true });
      expect(await answer.isDisabled()).toBe(true);
      await page.getByLabel('Answer', { exact: true }).first().fill('The staging one.');
      await answer.click();
      await page.getByText('Which database?').waitFor({ state: 'detached' });
    });
    expect(agents.calls[0]!.body).toEqual({ text: 'The staging one.' });
  });

  again('an answer that comes too late is reported, and the question stays', async () => {
    const { asking } = seed();
    const detail = 'The question was already answered by terminal.';
    agents.refusals.set('answer', { status: 409, body: { code: 'QUESTION_CLOSED', detail } });
    await on(
      `/agents/${asking.id}`,
      async (page) => {
        await page.getByRole('button', { name: 'Yes', exact: true }).click();
        await page.getByText(detail).waitFor();
      },
      { allowedErrors: /status of 409/ },
    );
  });
});

describe('board', () => {
  test('columns by what each agent needs, with answers on the card', async () => {
    const { asking } = seed();
    await on('/', async (page) => {
      await page.getByRole('button', { name: 'Board' }).click();
      const column = (name: string) => page.getByRole('region', { name, exact: true });
      await column('Needs you').getByRole('link', { name: asking.name }).waitFor();
      await column('Working').getByText('a tool call is running').waitFor();
      await column('Queued').getByRole('link', { name: 'draft the plan' }).waitFor();
      await column('Queued').getByText('Job of release, after build').waitFor();
      await column('Review').getByRole('link', { name: 'write the guide' }).waitFor();
      await column('Done').getByRole('link', { name: 'retry the upload' }).waitFor();
      expect(page.url()).toContain('view=board');
      // Nobody should allow a command without seeing it.
      await column('Needs you').getByText('npm publish --dry-run').waitFor();
      asking.status = 'working';
      await column('Needs you').getByRole('button', { name: 'Yes', exact: true }).click();
      await column('Working').getByRole('link', { name: asking.name }).waitFor();
      await page.getByLabel('Search agents').fill('guide');
      await eventually(async () =>
        expect(await page.locator('.board').getByRole('link').count()).toBe(1),
      );
    });
  });

  again('keys: j and k move between cards, Enter opens, v returns to the table', async () => {
    seed();
    await on('/?view=board', async (page) => {
      // The job of the pipeline and the agent come from two calls.
      const queued = page.getByRole('region', { name: 'Queued' }).getByRole('link');
      await eventually(async () => expect(await queued.count()).toBe(2));
      await page.keyboard.press('j');
      await page.keyboard.press('j');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'draft the plan', level: 1 }).waitFor();
      await page.goBack();
      await page.getByRole('region', { name: 'Queued' }).waitFor();
      await page.keyboard.press('v');
      await page.getByRole('table', { name: 'Agents' }).waitFor();
    });
  });

  again('ten thousand agents: only the first cards of a column are in the page', async () => {
    for (let index = 0; index < 10_000; index++) agents.addSession(`agent ${index}`, 'done');
    await on('/?view=board', async (page) => {
      const done = page.getByRole('region', { name: 'Done' });
      await done.getByText('10,000').waitFor();
      expect(await done.locator('.board-card').count()).toBe(50);
      await done.getByRole('button', { name: 'Show more of 9,950' }).click();
      await eventually(async () => expect(await done.locator('.board-card').count()).toBe(100));
    });
  });

  again.each(appearancesOf(import.meta.url))(
    'accessible at $width in $theme',
    async (appearance) => {
      const { asking } = seed();
      await on(
        '/?view=board',
        async (page, watched) => {
          await page.getByRole('button', { name: 'Yes', exact: true }).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('board');
          await page.getByRole('link', { name: asking.name }).click();
          await page.getByText('npm publish --dry-run').waitFor();
          await watched.expectAccessible();
          await watched.screenshot('question');
        },
        appearance,
      );
    },
  );
});
