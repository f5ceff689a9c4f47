/**
 * `npm run failover -- --rounds 200 --seed 1`: injects faults into a cluster of three database nodes
 * and a real etcd under load, and checks that nothing acknowledged is lost and that every key is
 * linearizable. `--no-build` takes the build as it is. Needs the program etcd.
 */
import { parseArgs } from 'node:util';
import { prepare, say } from './prepare.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    'min-acks': { type: 'string', default: '1' },
    /** Lease TTL in seconds. */
    ttl: { type: 'string', default: '10' },
    quiet: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
});
const [rounds, seed, minAcks, ttl] = ['rounds', 'seed', 'min-acks', 'ttl'].map((name) =>
  Number(values[name]),
);
if (![rounds, seed, minAcks].every(Number.isInteger) || rounds < 1 || minAcks < 1 || !(ttl >= 2)) {
  say('Use: npm run failover -- [--rounds 20] [--seed 1] [--min-acks 1] [--ttl 10] [--quiet]');
  process.exit(2);
}
if (!values['no-build']) prepare();

const { campaign } = await import('../packages/db/failover/campaign.mjs');
say(`seed ${seed}, ${rounds} rounds, min_acks ${minAcks}, TTL ${ttl} s`);
const started = performance.now();
try {
  const report = values.quiet ? undefined : say;
  const result = await campaign({ rounds, seed, minAcks, ttlMs: ttl * 1_000, say: report });
  const seconds = Number(((performance.now() - started) / 1_000).toFixed(1));
  console.log(JSON.stringify({ ok: true, seed, rounds, seconds, ...result }));
} catch (error) {
  say(error.stack);
  console.log(JSON.stringify({ ok: false, seed, message: error.message }));
  process.exitCode = 1;
}
