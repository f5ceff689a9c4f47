/**
 * `npm run failover -- --rounds 200 --seed 1`: injects faults into a cluster of three database nodes
 * and a real etcd under load, and checks that nothing acknowledged is lost and that every key is
 * linearizable. `npm run failover -- --help` lists the options.
 */
import { parseArgs } from 'node:util';
import { prepare, say } from './prepare.mjs';

const help = `Use: npm run failover -- [options]

Inject faults into a cluster of three database nodes and an etcd of three members, all on
loopback and under load. Check that no acknowledged write is lost or applied twice, that no epoch
has two leaders, and that every key is linearizable. Needs the program etcd.

  --rounds N     Number of faults, one per round (20)
  --seed N       Choose the faults and their times; the same seed repeats them (random)
  --min-acks N   Followers that must have a write before it is acknowledged, at least 1 (1)
  --ttl SECONDS  TTL of the leader's lease, at least 2 (10)
  --quiet        Print the result only, not every round
  --no-build     Use the build as it is
  --help         Show this help

The result is one line of JSON on stdout; the exit code is 0 without a violation, 1 with one and
2 for wrong options. unavailable_ms_* is the longest time without an acknowledged write per round.`;

const options = {
  help: { type: 'boolean', short: 'h', default: false },
  rounds: { type: 'string', default: '20' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  'min-acks': { type: 'string', default: '1' },
  ttl: { type: 'string', default: '10' },
  quiet: { type: 'boolean', default: false },
  'no-build': { type: 'boolean', default: false },
};
const values = readOptions();
if (values.help) {
  console.log(help);
  process.exit(0);
}
const [rounds, seed, minAcks, ttl] = ['rounds', 'seed', 'min-acks', 'ttl'].map((name) =>
  Number(values[name]),
);
if (![rounds, seed, minAcks].every(Number.isInteger) || rounds < 1 || minAcks < 1 || !(ttl >= 2)) {
  refuse('--rounds and --min-acks are at least 1, --seed is a whole number, --ttl is at least 2.');
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

function readOptions() {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return refuse(error.message);
  }
}

function refuse(problem) {
  say(`${problem}\n\n${help}`);
  process.exit(2);
}
