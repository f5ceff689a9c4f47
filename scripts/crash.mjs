/**
 * `npm run crash -- --rounds 200`: kills a database process with -9 again and again and checks
 * what it left behind; `npm run crash -- queue-workers` does so with pull workers and their queue
 * server, and `npm run crash -- flows` with steps, waits and children. `npm run crash -- --help` lists the options.
 */
import { readOptions, refuse } from './options.mjs';
import { prepare, say } from './prepare.mjs';

const campaigns = {
  database: '../packages/engine/crash/campaign.mjs',
  'queue-workers': '../packages/queue/crash/campaign.mjs',
  flows: '../packages/queue/crash/flows.mjs',
};
const { values, positionals } = readOptions({
  name: 'crash',
  use: '[database|queue-workers|flows] [options]',
  about: `Kills processes with -9 while they work, and checks that nothing acknowledged is lost: a database,
pull workers with their queue server, or workers that run flows.`,
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '50', help: 'Number of kills' },
    seed: { type: 'string', help: 'Repeat the run with this seed (default: random)' },
    directory: { type: 'string', help: 'Where to work; what is left there stays' },
    store: { type: 'string', default: 'embedded', help: 'Of the queue: embedded or postgres' },
    quiet: { type: 'boolean', default: false, help: 'Print the result only' },
    'no-build': { type: 'boolean', default: false, help: 'Use the build as it is' },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const [name = 'database', ...rest] = positionals;
const program = Object.hasOwn(campaigns, name) && rest.length === 0 ? campaigns[name] : undefined;
const stores = name === 'database' ? ['embedded'] : ['embedded', 'postgres'];
const isKnown = program !== undefined && stores.includes(values.store);
if (!isKnown || !Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  refuse(
    'crash',
    'Give database, queue-workers or flows, at least one round, a whole number as seed, and a store that it has.',
  );
}
if (!values['no-build']) prepare();

const { campaign } = await import(program);
say(`seed ${seed}, ${rounds} rounds`);
const started = performance.now();
try {
  const { directory, store, quiet } = values;
  const tally = await campaign({ rounds, seed, directory, store, say: quiet ? undefined : say });
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  console.log(JSON.stringify({ ok: true, seed, seconds: Number(seconds), ...tally }));
} catch (error) {
  say(error.stack);
  console.log(JSON.stringify({ ok: false, seed, message: error.message }));
  process.exitCode = 1;
}
