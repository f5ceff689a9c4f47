/**
 * Repeats three defects that did harm, and counts how often they appear:
 *
 *   node agents/regressions.mjs [--rounds 20] [--only D1]
 *
 * MILLRACE_CTL names the `bin/ctl` of another build to compare with.
 *
 *   D1  stopping one codex agent ends another one
 *   D2  a command sent to gemini becomes another command, or is lost
 *   D4  a queue task whose turn ended in an API error counts as done
 */
import { parseArgs } from 'node:util';
import { answerDialogs, taskReaches } from './steps.mjs';
import { World } from './world.mjs';

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, only: { type: 'string' } },
});

const over = ['idle', 'errored', 'done', 'orphaned'];

const defects = {
  async D1(world) {
    const start = async () => {
      const { id } = await world.spawn({ backend: 'codex', driver: 'tmux', prompt: '[[say hi]]' });
      await world.reach(id, over, 120_000);
      return id;
    };
    const [first, second] = [await start(), await start()];
    await world.stop(first);
    const isHarmed = await world
      .send(second, '[[say still here]]')
      .then(() => world.reach(second, over, 60_000))
      .then(({ status }) => status !== 'idle')
      .catch(() => true);
    await world.stop(second).catch(() => undefined);
    return isHarmed;
  },

  async D2(world, state) {
    if (state.id === undefined) {
      const request = { backend: 'gemini', driver: 'tmux', prompt: '[[say hi]]' };
      state.id = (await world.spawn(request)).id;
      // Builds without `agents.trust_workspace` show gemini's dialog.
      await answerDialogs(world, state.id);
    }
    const { id } = state;
    const send = async (text) => {
      await world.send(id, text);
      await world.reach(id, over, 60_000);
    };
    await send('[[say one]] remember the mill');
    await send('[[say two]] remember the race');
    const start = world.model.requests.length;
    await send('/compress');
    const requests = world.model.requests.slice(start).filter(({ api }) => api === 'gemini');
    return requests.length === 0;
  },

  async D4(world, state) {
    if (!state.isUp) {
      await world.stopDaemon();
      await world.startAll();
      state.isUp = true;
    }
    const flags = ['--backend', 'claude', '--driver', 'tmux', '--json'];
    const task = JSON.parse(await world.ctl('agent', 'submit', '[[fail 400]] please', ...flags));
    const ended = await taskReaches(
      world,
      task.id,
      ({ status, last_error }) => status === 'SUCCEEDED' || last_error,
    );
    await world.stopAgents();
    return ended.status === 'SUCCEEDED';
  },
};

const clis = { D1: 'codex', D2: 'gemini', D4: 'claude' };

for (const [name, run] of Object.entries(defects)) {
  if (options.only && options.only !== name) continue;
  const config = { agents: { trust_workspace: ['gemini'] } };
  const world = await World.start({ names: [clis[name]], config });
  const counts = { seen: 0, absent: 0, undecided: 0 };
  const state = {};
  try {
    for (let round = 0; round < Number(options.rounds); round++) {
      const result = await run(world, state).catch((error) => {
        process.stderr.write(`${name} round ${round + 1}: ${error.message}\n`);
        return undefined;
      });
      const outcome = result === undefined ? 'undecided' : result ? 'seen' : 'absent';
      counts[outcome] += 1;
      process.stderr.write(`${name} round ${round + 1}: ${outcome}\n`);
    }
  } finally {
    await world.close();
  }
  process.stdout.write(`${name} ${clis[name]} ${JSON.stringify(counts)}\n`);
}
