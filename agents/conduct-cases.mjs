/** Agents that conduct agents: by the daemon's tools, and as tasks of a plan. */
import assert from 'node:assert/strict';
import { openQuestion } from './acp-cases.mjs';
import { World } from './world.mjs';

export const conductCases = {
  /** The agent starts a child with its own token, waits for it, and asks a person. */
  'mcp: agents as tools': async (world, cli) => {
    const start = world.model.requests.length;
    const name = `helper-${Date.now()}`;
    const prompt = [
      ['spawn_agent', { prompt: 'Do a little.', backend: cli.name, name, driver: 'headless' }],
      ['wait_for_agent', { id: name, timeout_ms: 120_000 }],
      ['ask_person', { title: 'Which mill?', timeout_ms: 120_000 }],
    ].map(([tool, input]) => `[[tool ${cli.agentTool(tool, input)}]]`);
    const { id } = await world.spawn({
      backend: cli.name,
      driver: 'headless',
      // On a busy machine the server may connect only after the first call.
      prompt: `[[wait 4000]] ${prompt.join(' ')} [[say conducted]]`,
    });
    const question = await openQuestion(world, id);
    assert.equal(question.title, 'Which mill?');
    await world.api('POST', `/api/v1/questions/${question.id}:answer`, { text: 'the windmill' });
    const session = await world.reach(id, ['done', 'errored'], 120_000);
    assert.equal(session.status, 'done', `${session.status_reason} ${session.last_error}`);
    const { sessions } = await world.api('GET', '/api/v1/sessions');
    const child = sessions.find((each) => each.name === name);
    assert.equal(child?.parent_id, id, 'the child has no parent');
    assert.equal(child.status, 'done');
    const bodies = world.model.requests.slice(start).map(({ body }) => JSON.stringify(body ?? ''));
    assert.ok(
      bodies.some((body) => body.includes('the windmill')),
      'the answer did not come back',
    );
  },

  /** claude and codex on one prompt; the other one reviews the branch that is picked. */
  'plan: race and review': async (_world, cli) => {
    const both = ['claude', 'codex'];
    const reviewer = both.find((name) => name !== cli.name);
    const world = await World.start({ names: [cli.row, reviewer] });
    try {
      const task = {
        key: 'work',
        // The reviewer is shown the order, so the fake model says the same to it.
        prompt: '[[say All is well.\nDONE]]',
        race: both,
        verify: 'test -f README.md',
        review: { by: reviewer, rounds: 2 },
      };
      const body = { title: 'race', repo: world.repository, tasks: [task] };
      const { id } = await world.api('POST', '/api/v1/plans', body);
      const reach = async (isSo) => {
        let seen;
        const read = async () =>
          isSo((seen = (await world.api('GET', `/api/v1/plans/${id}`)).tasks[0]));
        await world.until(() => `the plan goes on: ${JSON.stringify(seen)}`, read, 300_000);
        return seen;
      };
      const isOver = ({ status }) => status === 'failed' || status === 'done';
      const raced = await reach((seen) => seen.waiting_for === 'pick' || isOver(seen));
      assert.deepEqual(
        raced.race.map(({ backend, status, verify }) => [backend, status, verify?.passed]),
        both.map((name) => [name, 'done', true]),
        JSON.stringify(raced.race.map(({ error }) => error)),
      );
      const { session_id } = raced.race.find(({ backend }) => backend === cli.name);
      await world.api('POST', `/api/v1/plans/${id}/tasks/work:pick`, { session_id });
      const done = await reach(isOver);
      assert.equal(done.status, 'done', done.result);
      assert.match(done.result, /All is well/);
      const review = await world.session(done.sessions[2]);
      assert.equal(review.backend, reviewer);
    } finally {
      await world.close();
    }
  },
};
