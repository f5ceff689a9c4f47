/**
 * `npm run failover -- --rounds 200 --seed 1`: injects faults into a cluster of three database nodes
 * and a real etcd under load, and checks that nothing acknowledged is lost and that every key is
 * linearizable. `npm run failover -- --help` lists the options.
 */
import { readOptions, refuse } from './options.mjs';
import { prepare, say } from './prepare.mjs';

const name = 'failover';
const { values } = readOptions({
  name,
  about: `Injects faults into a cluster of three database nodes and an etcd of three members, all on
loopback and under load. Checks that no acknowledged write is lost or applied twice, that no epoch
has two leaders, and that every key is linearizable. Needs the program etcd.

The result is one line of JSON on stdout; the exit code is 0 without a violation, 1 with one and
2 for wrong options. unavailable_ms_* is the longest time without an acknowledged write per round.`,
  options: {
    rounds: { type: 'string', default: '20', help: 'Number of faults, one per round' },
    seed: { type: 'string', help: 'Repeat the faults and their times (default: random)' },
    'min-acks': {
      type: 'string',
      default: '1',
      help: 'Followers that must have a write before it is acknowledged, at least 1',
    },
    ttl: {
      type: 'string',
      default: '10',
      help: "TTL of the leader's lease in seconds, at least 2",
    },
    quiet: { type: 'boolean', default: false, help: 'Print the result only, not every round' },
    'no-build': { type: 'boolean', default: false, help: 'Use the build as it is' },
  },
});
values.seed ??= String(Date.now() % 1_000_000);
const [rounds, seed, minAcks, ttl] = ['rounds', 'seed', 'min-acks', 'ttl'].map((option) =>
  Number(values[option]),
);
if (![rounds, seed, minAcks].every(Number.isInteger) || rounds < 1 || minAcks < 1 || !(ttl >= 2)) {
  refuse(
    name,
    '--rounds and --min-acks are at least 1, --seed is a whole number, --ttl is at least 2.',
  );
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
