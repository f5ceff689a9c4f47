/**
 * What is proven of each real command-line agent: one function per capability. A case throws when
 * the capability is not there; what it needs is in the world it is given.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { acpCases, openQuestion, overAcp } from './acp-cases.mjs';
import { conductCases } from './conduct-cases.mjs';
import { shapeCases } from './shapes.mjs';
import {
  answerDialogs,
  contextReaches,
  headless,
  interactive,
  promptsSince,
  taskReaches,
  turn,
  userTextIn,
} from './steps.mjs';

/** Small requests without tools, such as for a title, are in no transcript. */
const isCounted = ({ usage, isScripted, hasTools }) => usage && isScripted && hasTools;

const tokenFields = ['input', 'output', 'cache_read', 'cache_write'];

/** Compares what the daemon counts with what the model reported; resolves with the numbers. */
async function countTokens(world, cli, run) {
  const before = await world.api('GET', '/api/v1/spend');
  const start = world.model.requests.length;
  const id = await run('[[usage in=120 out=7 read=900 write=40 reason=3]] [[say counted]]');
  const sent = world.model.requests.slice(start).filter(isCounted);
  assert.ok(sent.length > 0, 'the model was not called');
  const want = cli.tokens(sent.map((each) => each.usage));
  let got;
  await world.until(
    () => `${JSON.stringify(got)} is ${JSON.stringify(want)}`,
    async () => {
      const after = await world.api('GET', '/api/v1/spend');
      got = tokenFields.map((name) => after[`${name}_tokens`] - before[`${name}_tokens`]);
      return got.every((count, index) => count === want[index]);
    },
    90_000,
  );
  if (typeof id === 'string') await world.stop(id);
  const numbers = tokenFields.map((name, index) => `${name} ${got[index]} = ${want[index]}`);
  return `${sent.length} calls: ${numbers.join(', ')}`;
}

/** What the daemon must know of an agent so that its spend belongs to it. */
function assertKnown({ backend_session_id: own, model, context_tokens: tokens }, wanted) {
  assert.ok(own, 'its own session is not known');
  assert.ok(model, 'its model is not known');
  assert.equal(tokens, wanted);
}

/** A headless run whose question is answered with no. */
async function rejected(world, cli, prompt) {
  const { id } = await world.spawn({ backend: cli.name, driver: 'headless', prompt });
  const question = await openQuestion(world, id);
  await world.api('POST', `/api/v1/questions/${question.id}:answer`, { option_id: 'reject' });
  return world.reach(id, ['done', 'errored', 'rate_limited'], 60_000);
}

const headlessCases = {
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

  'headless: refused tool': async (world, cli) => {
    const file = join(world.elsewhere, `refused-${cli.name}.txt`);
    const prompt = `[[tool ${cli.shellTool(`touch ${file}`)}]]`;
    const session = await (cli.reportsDenial ? rejected : headless)(world, cli, prompt);
    assert.equal(existsSync(file), false, 'the command ran');
    if (!cli.reportsDenial) return;
    assert.equal(session.status, 'errored', session.status_reason);
    assert.match(session.last_error, /permission denied: .*touch /);
  },

  'headless: session, model, context': async (world, cli) => {
    const session = await headless(world, cli, '[[usage in=700 out=5 read=200]] [[say known]]');
    assert.equal(session.status, 'done', session.last_error ?? session.status_reason);
    assertKnown(session, 900);
  },

  'headless: API error': async (world, cli) => {
    const session = await headless(world, cli, '[[fail 400]]');
    assert.equal(session.status, 'errored', session.status_reason);
    assert.ok(session.last_error, 'no reason is given');
  },

  'headless: 5xx with retry': async (world, cli) => {
    const session = await headless(world, cli, '[[fail 503 times=2]] [[say made it]]');
    assert.equal(session.status, 'done', `${session.status_reason} ${session.last_error}`);
  },

  'headless: 429 with reset time': async (world, cli) => {
    const session = await headless(world, cli, '[[fail 429 reset=7200]]', 180_000);
    assert.equal(session.status, 'rate_limited', `${session.status_reason} ${session.last_error}`);
    const inMs = Date.parse(session.limited_until) - Date.now();
    const minMs = cli.reportsReset ? 110 * 60_000 : 10 * 60_000;
    assert.ok(inMs > minMs && inMs < 125 * 60_000, `limited until ${session.limited_until}`);
  },

  'headless: broken stream': async (world, cli) => {
    const session = await headless(world, cli, '[[cut]]', 180_000);
    assert.equal(session.status, 'errored', session.status_reason);
    assert.ok(session.last_error, 'no reason is given');
  },
};

const terminalCases = {
  'tmux: first-run dialogs': async (world, cli) => {
    const start = world.model.requests.length;
    const prompt = `[[say hello]] first ${cli.name}`;
    const { id } = await world.spawn({ backend: cli.name, driver: 'tmux', prompt, cwd: undefined });
    const session = await answerDialogs(world, id);
    assert.equal(session.status, 'idle', `${session.status_reason} ${session.last_error}`);
    // Later requests of the same turn, such as those by which qwen updates its memory, are no runs.
    const runs = world.model.requests
      .slice(start)
      .filter((request) => isCounted(request) && request.answers === 0);
    assert.equal(runs.length, 1, `the prompt ran ${runs.length} times`);
    await world.stop(id);
  },

  'tmux: turn seen': async (world, cli) => {
    const session = await interactive(world, cli, '[[wait 2000]] [[say hello]]');
    const order = session.seen.filter((status) => status === 'working' || status === 'idle');
    assert.deepEqual(order, ['working', 'idle'], session.seen.join(', '));
    assert.match(await world.output(session.id), /hello/);
    await world.stop(session.id);
  },

  'tmux: session, model, context': async (world, cli) => {
    const { id } = await interactive(world, cli, '[[usage in=700 out=5 read=200]] [[say known]]');
    assertKnown(await contextReaches(world, id, 900, 60_000), 900);
    await world.stop(id);
  },

  'tmux: last answer is the result': async (world, cli) => {
    const { id } = await interactive(world, cli, '[[say first answer]]');
    await turn(world, id, '[[say the second one]]');
    const read = async () => (await world.api('GET', `/api/v1/sessions/${id}/summary`)).output;
    let output;
    await world.until(
      () => `the answer is read: ${JSON.stringify(output)}`,
      async () => (output = (await read()).trim()) === 'the second one',
      20_000,
    );
    await world.stop(id);
    assert.equal((await read()).trim(), 'the second one', 'after its end');
  },

  'tmux: text arrives': async (world, cli) => {
    const { id } = await interactive(world, cli);
    const before = world.model.requests.length;
    await turn(world, id, '[[say one]] it\'s a "quoted" line');
    await turn(world, id, 'first line\nsecond line [[say two]]');
    const prompts = promptsSince(world, before).join('\n');
    assert.match(prompts, /it's a "quoted" line/);
    assert.match(prompts, /second line/);
    await world.stop(id);
  },

  'tmux: permission dialog answered': async (world, cli) => {
    const file = join(world.elsewhere, `allowed-${cli.name}.txt`);
    const prompt = `[[tool ${cli.shellTool(`touch ${file}`)}]] [[say allowed it]]`;
    const { id } = await world.spawn({ backend: cli.name, driver: 'tmux', prompt });
    const asking = await world.reach(id, ['waiting_for_input', 'idle', 'errored'], 120_000);
    assert.equal(asking.status, 'waiting_for_input', asking.status_reason);
    const answered = new Set();
    while (answered.size < (cli.questionsPerCommand ?? 1)) {
      const question = await openQuestion(world, id, answered);
      assert.equal(existsSync(file), false, 'the command ran before the answer');
      await world.send(id, '1');
      answered.add(question.id);
    }
    const session = await world.reach(id, ['idle', 'errored', 'done'], 60_000);
    assert.equal(session.status, 'idle', session.status_reason);
    assert.ok(existsSync(file), 'the command did not run after the answer');
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

  'tmux: slash command': async (world, cli) => {
    const { id } = await interactive(world, cli, '[[say hello]] remember the mill');
    await turn(world, id, '[[say again]] and the race');
    const start = world.model.requests.length;
    await world.send(id, cli.compact);
    await world.reach(id, 'idle', 60_000);
    await turn(world, id, '[[say after]] the command');
    const sent = world.model.requests.slice(start);
    const typed = sent.filter(({ body }) => userTextIn(body).includes(`"${cli.compact}"`));
    assert.equal(typed.length, 0, 'the command was sent to the model as text');
    assert.ok(sent.filter(({ api }) => api).length >= 2, 'the conversation was not compacted');
    await world.stop(id);
  },

  'tmux: context and compaction': async (world, cli) => {
    const { id } = await interactive(world, cli);
    await turn(world, id, '[[usage in=150000 out=50]] [[say much]]');
    await contextReaches(world, id, 150_000);
    await world.send(id, cli.compact);
    await world.reach(id, 'idle', 60_000);
    await turn(world, id, '[[usage in=9000 out=5]] [[say little]]');
    const session = await contextReaches(world, id, 9_000);
    assert.equal(session.context_window ?? null, cli.contextWindow ?? null);
    await world.stop(id);
  },

  'tmux: stop and resume': async (world, cli) => {
    const { id } = await interactive(world, cli, '[[say hello]] remember the mill');
    await world.stop(id);
    await world.api('POST', `/api/v1/sessions/${id}:restart`, {});
    const session = await world.reach(id, ['idle', 'errored'], 120_000);
    assert.equal(session.status, 'idle', `${session.status_reason} ${session.last_error}`);
    const start = world.model.requests.length;
    await turn(world, id, '[[say resumed]]');
    const [request] = world.model.requests.slice(start).filter(isCounted);
    assert.match(userTextIn(request.body), /remember the mill/);
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

  'tmux: daemon killed and restarted': async (world, cli) => {
    const { id, pid } = await interactive(world, cli);
    await world.stopDaemon('SIGKILL');
    await world.startDaemon();
    const again = await turn(world, id, '[[say after the restart]]');
    assert.equal(again.pid, pid);
    await world.stop(id);
  },
};

const otherCases = {
  'queue: success and failure': async (world, cli) => {
    await world.stopDaemon();
    await world.startAll();
    try {
      const flags = ['--data', world.dataDir, '--backend', cli.name, '--json'];
      const submit = async (prompt) =>
        JSON.parse(await world.ctl('agent', 'submit', prompt, ...flags));
      const good = await submit('[[say well done]]');
      await taskReaches(world, good.id, (task) => task.status === 'SUCCEEDED');
      const bad = await submit('[[fail 400]] please');
      const failed = await taskReaches(world, bad.id, (task) => task.last_error);
      assert.equal(failed.last_error.error_type, 'AGENT_FAILED', JSON.stringify(failed.last_error));
      assert.notEqual(failed.status, 'SUCCEEDED');
    } finally {
      await world.stopAgents();
      await world.stopDaemon();
      await world.startDaemon();
    }
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

  'tokens: equal to the model': (world, cli) =>
    countTokens(world, cli, (prompt) => headless(world, cli, prompt)),

  'tokens: equal in a terminal': (world, cli) =>
    countTokens(world, cli, async (prompt) => {
      const { id } = await interactive(world, cli, prompt);
      await turn(world, id, prompt);
      return id;
    }),

  'acp: tokens equal to the model': (world, cli) =>
    countTokens(world, cli, async (prompt) => {
      const { id } = await overAcp(world, cli, prompt);
      await turn(world, id, prompt);
      return id;
    }),

  'mcp: tools listed and called': async (world, cli) => {
    const start = world.model.requests.length;
    const call = `[[tool ${cli.mcpTool('list_backends')}]]`;
    // On a busy machine the server may connect only after the first call.
    const prompt = `${call} [[wait 4000]] ${call} [[say called it]]`;
    const session = await headless(world, cli, prompt);
    assert.equal(session.status, 'done', `${session.status_reason} ${session.last_error}`);
    const bodies = world.model.requests.slice(start).map(({ body }) => JSON.stringify(body ?? ''));
    for (const name of cli.mcpTools) {
      assert.ok(
        bodies.some((body) => body.includes(name)),
        `the tool ${name} is not offered`,
      );
    }
    assert.ok(
      bodies.some((body) => body.includes('binary_path')),
      'the tool returned nothing',
    );
  },
};

export const cases = {
  discovery: async (world, cli) => {
    const { backends } = await world.api('GET', '/api/v1/backends');
    const row = backends.find(({ id }) => id === cli.name);
    assert.ok(row?.installed && row.enabled, `not found: ${JSON.stringify(row)}`);
    if (cli.adapter?.missing) return;
    // Found without a spawn or a rescan: the daemon runs the programs some time after its start.
    await world.until(
      () => `the backend ${cli.name} speaks ACP`,
      async () => {
        const registry = await world.api('GET', '/api/v1/backends');
        return registry.backends.find(({ id }) => id === cli.name)?.acp !== undefined;
      },
    );
  },
  ...headlessCases,
  ...terminalCases,
  ...acpCases,
  ...otherCases,
  ...conductCases,
  ...shapeCases,
};
