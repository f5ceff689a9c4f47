/**
 * Repeats defects that did harm, and counts how often they appear:
 *
 *   node agents/regressions.mjs [--rounds 20] [--only D1] [--build DIR] [--publish]
 *
 * `--build` tests another built checkout. `--publish` stores the counts under its commit in
 * agents/regressions.json, which `npm run agents -- --publish` writes to the page of results.
 *
 *   D1      stopping one codex agent ends another one
 *   D2      a command sent to gemini becomes another command, or is lost
 *   D4      a queue task whose turn ended in an API error counts as done
 *   tokens  the tokens of a run differ from what the model reported
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { answerDialogs, taskReaches } from './steps.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    only: { type: 'string' },
    cli: { type: 'string' },
    build: { type: 'string' },
    publish: { type: 'boolean', default: false },
  },
});
const here = dirname(fileURLToPath(import.meta.url));
const build = resolve(options.build ?? join(here, '..'));
// The world reads it when it is loaded.
process.env.MILLRACE_CTL ??= join(build, 'bin', 'ctl');
const { clis } = await import('./clis.mjs');
const { cases } = await import('./cases.mjs');
const { World } = await import('./world.mjs');

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

  async tokens(world, _state, cli) {
    const isUnequal = (error) => {
      if (/^not within .*\] is \[/.test(error.message)) return true;
      throw error;
    };
    return cases['tokens: equal to the model'](world, cli).then(() => false, isUnequal);
  },
};

const testedClis = { D1: ['codex'], D2: ['gemini'], D4: ['claude'], tokens: Object.keys(clis) };

for (const [name, run] of Object.entries(defects)) {
  if (options.only && options.only !== name) continue;
  for (const cli of testedClis[name]) {
    if (options.cli && options.cli !== cli) continue;
    const counts = await repeat(name, run, { name: cli, ...clis[cli] });
    process.stdout.write(`${name} ${cli} ${JSON.stringify(counts)}\n`);
    if (options.publish) store(name, cli, counts);
  }
}

async function repeat(name, run, cli) {
  const world = await World.start({ names: [cli.name], config: configOf(build) });
  const counts = { seen: 0, absent: 0, undecided: 0 };
  const state = {};
  try {
    for (let round = 0; round < Number(options.rounds); round++) {
      const result = await run(world, state, cli).catch(async (error) => {
        process.stderr.write(`${name} round ${round + 1}: ${error.message}\n`);
        await showLive(world);
        return undefined;
      });
      const outcome = result === undefined ? 'undecided' : result ? 'seen' : 'absent';
      counts[outcome] += 1;
      process.stderr.write(`${name} ${cli.name} round ${round + 1}: ${outcome}\n`);
    }
  } finally {
    await world.close();
  }
  return counts;
}

/** Why a round was undecided is on the screens of the agents, which are then stopped. */
async function showLive(world) {
  const { sessions } = await world.api('GET', '/api/v1/sessions');
  for (const { id, pid, status, status_reason: reason } of sessions) {
    if (pid === null) continue;
    process.stderr.write(`${id} is ${status}: ${reason}\n${await world.output(id)}\n`);
  }
  await world.stopAgents();
}

/** Builds before `agents.trust_workspace` refuse it, and show gemini's dialog. */
function configOf(directory) {
  const contract = join(directory, 'packages', 'daemon', 'src', 'server', 'config.ts');
  return readFileSync(contract, 'utf8').includes('trust_workspace')
    ? { agents: { trust_workspace: ['gemini'] } }
    : {};
}

/** Adds the counts to earlier ones of the same build, so that no repetition is left out. */
function store(name, cli, counts) {
  const file = join(here, 'regressions.json');
  const stored = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
  const args = ['-C', build, 'rev-parse', '--short=10', 'HEAD'];
  const commit = spawnSync('git', args, { encoding: 'utf8' }).stdout.trim();
  const date = new Date().toISOString().slice(0, 10);
  const isSame = (row) => row.defect === name && row.cli === cli && row.build === commit;
  const before = stored.find(isSame) ?? { seen: 0, absent: 0, undecided: 0 };
  const total = Object.fromEntries(
    Object.entries(counts).map(([outcome, count]) => [outcome, before[outcome] + count]),
  );
  const others = stored.filter((row) => !isSame(row));
  const rows = [...others, { defect: name, cli, build: commit, date, ...total }];
  writeFileSync(file, `${JSON.stringify(rows, null, 2)}\n`);
}
