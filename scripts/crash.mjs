/**
 * `npm run crash -- --rounds 200`: kills a database process with -9 again and again and checks
 * what it left behind. `--seed N` repeats a run, `--no-build` takes the build as it is.
 */
import { parseArgs } from 'node:util';
import { prepare, say } from './prepare.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    /** Where to work; what is left there at the end stays. */
    directory: { type: 'string' },
    quiet: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  say('Use: npm run crash -- [--rounds 50] [--seed 1] [--quiet]');
  process.exit(2);
}
if (!values['no-build']) prepare();

const { campaign } = await import('../packages/db/crash/campaign.mjs');
say(`seed ${seed}, ${rounds} rounds`);
const started = performance.now();
try {
  const { directory } = values;
  const tally = await campaign({ rounds, seed, directory, say: values.quiet ? undefined : say });
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  console.log(JSON.stringify({ ok: true, seed, seconds: Number(seconds), ...tally }));
} catch (error) {
  say(error.stack);
  console.log(JSON.stringify({ ok: false, seed, message: error.message }));
  process.exitCode = 1;
}
