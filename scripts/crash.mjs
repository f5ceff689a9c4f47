/**
 * `npm run crash -- --rounds 200`: kills a database process with -9 again and again and checks
 * what it left behind. `npm run crash -- queue-workers` kills pull workers and their queue server;
 * with `--store postgres` there are two servers on a PostgreSQL of its own. `--seed N` repeats a
 * run, `--no-build` takes the build as it is.
 */
import { parseArgs } from 'node:util';
import { prepare, say } from './prepare.mjs';

const campaigns = {
  database: '../packages/db/crash/campaign.mjs',
  'queue-workers': '../packages/queue/crash/campaign.mjs',
};
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    /** Where to work; what is left there at the end stays. */
    directory: { type: 'string' },
    /** Of the queue. */
    store: { type: 'string', default: 'embedded' },
    quiet: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed);
const [name = 'database', ...rest] = positionals;
const program = Object.hasOwn(campaigns, name) && rest.length === 0 ? campaigns[name] : undefined;
const stores = name === 'queue-workers' ? ['embedded', 'postgres'] : ['embedded'];
const isKnown = program !== undefined && stores.includes(values.store);
if (!isKnown || !Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  say('Use: npm run crash -- [database|queue-workers] [--rounds 50] [--seed 1] [--quiet]');
  say('     with queue-workers also: [--store embedded|postgres]');
  process.exit(2);
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
