/**
 * What is proven of each real command-line agent: one function per capability. A case throws when
 * the capability is not there; what it needs is in the world it is given.
 */
import assert from 'node:assert/strict';

const over = ['done', 'errored', 'rate_limited'];

async function headless(world, cli, prompt, limitMs = 120_000) {
  const { id } = await world.spawn({ backend: cli.name, driver: 'headless', prompt });
  return world.reach(id, over, limitMs);
}

/** An interactive agent after its first turn. */
async function interactive(world, cli, prompt = '[[say hello]]') {
  const { id } = await world.spawn({ backend: cli.name, driver: 'tmux', prompt });
  const session = await world.reach(id, ['idle', 'errored', 'done'], 120_000);
  assert.equal(session.status, 'idle', `${session.status_reason} ${session.last_error}`);
  return session;
}

async function turn(world, id, text) {
  await world.send(id, text);
  const session = await world.reach(id, ['idle', 'errored', 'done'], 60_000);
  assert.equal(session.status, 'idle', session.status_reason);
  return session;
}

/** The prompts that the model was sent, newest last. */
const promptsIn = (world) => world.model.requests.map(({ prompt }) => prompt ?? '');

/** Small requests without tools, such as for a title, are in no transcript. */
const isCounted = ({ usage, isScripted, hasTools }) => usage && isScripted && hasTools;

export const cases = {
  discovery: async (world, cli) => {
    const { backends } = await world.api('GET', '/api/v1/backends');
    const row = backends.find(({ id }) => id === cli.name);
    assert.ok(row?.installed && row.enabled, `not found: ${JSON.stringify(row)}`);
  },

  'headless: success': async (world, cli) => {
    const session = await headless(world, cli, '[[say all is well]]');
    assert.equal(session.status, 'done', `${session.status_reason} ${session.last_error}`);
    assert.match(await world.output(session.id), /all is well/);
  },

  'headless: tool call': async (world, cli) => {
    const prompt = `[[tool ${cli.readTool(world.repository)}]] [[say read it]]`;
    const session = await headless(world, cli, prompt);
    assert.equal(session.status, 'done', session.last_error ?? session.status_reason);
    assert.match(await world.output(session.id), /read it/);
  },

  'headless: API error': async (world, cli) => {
    const session = await headless(world, cli, '[[fail 400]]');
    assert.equal(session.status, 'errored', session.status_reason);
    assert.ok(session.last_error, 'no reason is given');
  },

  'headless: one retry': async (world, cli) => {
    const session = await headless(world, cli, '[[fail 500 times=1]] [[say made it]]');
    assert.equal(session.status, 'done', `${session.status_reason} ${session.last_error}`);
  },

  'tmux: turn seen': async (world, cli) => {
    const session = await interactive(world, cli, '[[wait 2000]] [[say hello]]');
    const order = session.seen.filter((status) => status === 'working' || status === 'idle');
    assert.deepEqual(order, ['working', 'idle'], session.seen.join(', '));
    assert.match(await world.output(session.id), /hello/);
    await world.stop(session.id);
  },

  'tmux: text arrives': async (world, cli) => {
    const { id } = await interactive(world, cli);
    const before = world.model.requests.length;
    await turn(world, id, '[[say one]] it\'s a "quoted" line');
    await turn(world, id, 'first line\nsecond line [[say two]]');
    const prompts = promptsIn(world).slice(before).join('\n');
    assert.match(prompts, /it's a "quoted" line/);
    assert.match(prompts, /second line/);
    await world.stop(id);
  },

  'tmux: failed turn': async (world, cli) => {
    const { id } = await interactive(world, cli);
    const failed = await turn(world, id, '[[fail 400]] please');
    assert.ok(failed.turn_error, `the turn counts as done: ${failed.status_reason}`);
    const good = await turn(world, id, '[[say better]]');
    assert.equal(good.turn_error ?? null, null);
    await world.stop(id);
  },

  'tmux: two agents, one stopped': async (world, cli) => {
    const first = await interactive(world, cli);
    const second = await interactive(world, cli);
    await world.stop(first.id);
    await turn(world, second.id, '[[say still here]]');
    assert.match(await world.output(second.id), /still here/);
    await world.stop(second.id);
  },

  'tmux: daemon restart': async (world, cli) => {
    const { id, pid } = await interactive(world, cli);
    await world.stopDaemon('SIGKILL');
    await world.startDaemon();
    const again = await turn(world, id, '[[say after the restart]]');
    assert.equal(again.pid, pid);
    await world.stop(id);
  },

  'pipeline: failing job': async (world, cli) => {
    const jobs = [
      { id: 'a', prompt: '[[fail 400]]', backend: cli.name },
      { id: 'b', prompt: '[[say never]]', backend: cli.name, depends_on: ['a'] },
    ];
    const repo = world.repository;
    const { id } = await world.api('POST', '/api/v1/pipelines', { name: 'failing', repo, jobs });
    let pipeline;
    await world.until(
      () => `the pipeline ends: ${JSON.stringify(pipeline)}`,
      async () => {
        pipeline = await world.api('GET', `/api/v1/pipelines/${id}`);
        return pipeline.status === 'done' || pipeline.status === 'stalled';
      },
      120_000,
    );
    assert.equal(pipeline.status, 'stalled');
    assert.equal(pipeline.jobs[0].status, 'failed');
  },

  'tokens: equal to the model': async (world, cli) => {
    const before = await world.api('GET', '/api/v1/spend');
    const start = world.model.requests.length;
    const usage = '[[usage in=120 out=7 read=900 write=40 reason=3]]';
    await headless(world, cli, `${usage} [[say counted]]`);
    const sent = world.model.requests.slice(start).filter(isCounted);
    const want = cli.tokens(sent.map((each) => each.usage));
    let got;
    await world.until(
      () => `${JSON.stringify(got)} is ${JSON.stringify(want)}`,
      async () => {
        const after = await world.api('GET', '/api/v1/spend');
        got = {
          input: after.input_tokens - before.input_tokens,
          output: after.output_tokens - before.output_tokens,
        };
        return got.input === want.input && got.output === want.output;
      },
      20_000,
    );
  },
};
