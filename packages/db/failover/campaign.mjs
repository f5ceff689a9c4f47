import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@millrace/db/client';
import {
  insertProblems,
  percentile,
  sharedEpochs,
  updateProblems,
  violatedKeys,
} from './checkers.mjs';
import { promotionsOf, startEtcd, startNode } from './cluster.mjs';
import { Load } from './load.mjs';

const recoveryMs = 60_000;

/** Each fault begins at once and returns how it is ended. */
const faults = {
  'kill -9 of the leader': async ({ leader }) => {
    await leader.process.kill();
    return () => leader.process.start();
  },
  'kill -9 of a follower': async ({ follower }) => {
    await follower.process.kill();
    return () => follower.process.start();
  },
  'SIGSTOP of the leader': async ({ leader }) => {
    leader.process.signal('SIGSTOP');
    return () => leader.process.signal('SIGCONT');
  },
  'leader alone': async ({ leader }) => {
    for (const proxy of leader.proxies) proxy.stop();
    return () => leader.proxies.forEach((proxy) => proxy.heal());
  },
  'leader with etcd': async ({ leader }) => {
    leader.inbound.cut();
    return () => leader.inbound.heal();
  },
  'follower without etcd and clients': async ({ follower }) => {
    for (const proxy of follower.proxies) proxy.cut();
    return () => follower.proxies.forEach((proxy) => proxy.heal());
  },
  'loss of an etcd member': async ({ etcd, random }) => {
    const member = etcd.members[Math.floor(random() * etcd.members.length)];
    await member.kill();
    return () => member.start();
  },
  'slow network of the leader': async ({ leader }) => {
    for (const proxy of leader.proxies) proxy.delay(200);
    return () => leader.proxies.forEach((proxy) => proxy.heal());
  },
};

/**
 * Runs rounds of faults against a cluster of three nodes under load; throws on a violation.
 * Every fault occurs once before one occurs again.
 */
export async function campaign({ rounds, seed, minAcks = 1, ttlMs = 3_000, say = () => {} }) {
  const random = generator(seed);
  const directory = mkdtempSync(join(tmpdir(), 'mr-failover-'));
  const closing = [async () => rmSync(directory, { recursive: true, force: true })];
  try {
    const etcd = await startEtcd(directory);
    closing.push(() => Promise.all(etcd.members.map((member) => member.kill())));
    const nodes = [];
    for (let i = 0; i < 3; i++) {
      const options = { directory, etcdPorts: etcd.ports, minAcks, ttlMs };
      const node = await startNode(i, options);
      closing.push(() => node.close());
      nodes.push(node);
    }
    const cluster = await connect(
      nodes.map(({ url }) => url),
      { timeoutMs: 30_000 },
    );
    closing.push(() => cluster.close());
    await steady(nodes);
    const gaps = [];
    // Numbers of its own: how often the load draws depends on time, and faults must not.
    const load = new Load(nodes, cluster, generator(seed + 1));
    await load.start();
    let names = [];
    for (let round = 1; round <= rounds; round++) {
      if (names.length === 0) names = shuffled(Object.keys(faults), random);
      const name = names.pop();
      const gapMs = await runRound({ name, nodes, etcd, load, random, ttlMs });
      gaps.push(gapMs);
      say(`round ${round}: ${name}, writes back after ${Math.round(gapMs)} ms`);
    }
    await load.stop();
    return { ...(await judge({ nodes, load, cluster })), ...figures(gaps) };
  } finally {
    for (const close of closing.toReversed()) await close();
  }
}

async function runRound({ name, nodes, etcd, load, random, ttlMs }) {
  const leader = await leaderOf(nodes);
  const followers = nodes.filter((node) => node !== leader);
  const follower = followers[Math.floor(random() * followers.length)];
  await sleep(300 + random() * 700);
  const begun = performance.now();
  const end = await faults[name]({ leader, follower, etcd, random });
  // Writes of the time before the fault may still be acknowledged.
  await sleep(200);
  const firstAck = () => load.ackTimes.find((at) => at > begun + 200);
  const holdMs = ttlMs * (1 + 3 * random());
  while (performance.now() < begun + holdMs) await sleep(50);
  await end();
  const limit = performance.now() + recoveryMs;
  while (firstAck() === undefined && performance.now() < limit) await sleep(50);
  if (firstAck() === undefined) throw new Error(`No write for ${recoveryMs} ms after "${name}"`);
  await steady(nodes);
  return longestGap(load.ackTimes, begun);
}

/** The longest time without an acknowledged write since the fault. */
function longestGap(ackTimes, begun) {
  let last = begun;
  let longest = 0;
  for (const at of ackTimes) {
    if (at < begun) continue;
    longest = Math.max(longest, at - last);
    last = at;
  }
  return longest;
}

async function statesOf(nodes) {
  return Promise.all(nodes.map((node) => node.status().catch(() => undefined)));
}

async function leaderOf(nodes) {
  const states = await statesOf(nodes);
  const found = nodes[states.findIndex((status) => status?.state === 'leading')];
  if (!found) throw new Error('The cluster has no leader');
  return found;
}

/** Waits until one node leads and the others stream from it. */
async function steady(nodes) {
  const until = performance.now() + recoveryMs;
  for (;;) {
    const states = (await statesOf(nodes)).map((status) => status?.state ?? 'down');
    const count = (state) => states.filter((each) => each === state).length;
    if (count('leading') === 1 && count('streaming') === nodes.length - 1) return;
    if (performance.now() > until) {
      const logs = nodes.map(({ process }) => process.output.slice(-1_500)).join('\n---\n');
      throw new Error(`The cluster did not recover: ${states.join(', ')}\n${logs}`);
    }
    await sleep(100);
  }
}

async function judge({ nodes, load, cluster }) {
  const found = [];
  let cursor;
  do {
    const page = await cluster.collection('inserts').find({ limit: 1_000, cursor });
    found.push(...page.records.map(({ data }) => data.value));
    cursor = page.nextCursor;
  } while (cursor);
  const { lost, doubled } = insertProblems(load.inserted, found);
  const counters = [];
  for (const counter of load.counters) {
    const { rev } = await cluster.collection('counters').findByKey(counter.key);
    counters.push({ ...counter, rev });
  }
  const miscounted = updateProblems(counters);
  const violated = violatedKeys(load.operations);
  const shared = sharedEpochs(nodes.flatMap(promotionsOf));
  const problems = [
    lost.length > 0 && `acknowledged inserts were lost: ${lost.slice(0, 10).join(', ')}`,
    doubled.length > 0 && `inserts were applied twice: ${doubled.slice(0, 10).join(', ')}`,
    miscounted.length > 0 && `updates were lost or applied twice: ${JSON.stringify(counters)}`,
    violated.length > 0 && `not linearizable: ${violated.join(', ')}`,
    shared.length > 0 && `epochs with two leaders: ${shared.join(', ')}`,
  ].filter(Boolean);
  if (problems.length > 0) throw new Error(problems.join('; '));
  const updates = counters.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  return { operations: load.operations.length, inserts: load.inserted.length, updates };
}

function figures(gaps) {
  return {
    unavailable_ms_p50: Math.round(percentile(gaps, 0.5)),
    unavailable_ms_p95: Math.round(percentile(gaps, 0.95)),
  };
}

function shuffled(items, random) {
  const mixed = [...items];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  return mixed;
}

/** Random numbers from a seed (mulberry32). */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
