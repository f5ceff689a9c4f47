import { simulate, type Simulation } from '@millrace/kit/simulation';
import { expect, test } from 'vitest';
import { campaignSize } from '../../../../../test/support/campaign.js';
import { SimulatedEtcd } from './simulated-etcd.test-support.js';
import { SimulatedNode } from './simulated-node.test-support.js';

const hourMs = 3_600_000;

interface Findings {
  /** Moments at which two nodes accepted writes. */
  doubleLeaders: number;
  /** Acknowledged values that a new leader did not have. */
  lost: string[];
  acked: number;
  terms: number;
}

/** Three nodes under pauses, crashes, cuts and an etcd that is away at times. */
function startCluster(world: Simulation, options: { minAcks: number; ttlMs: number }): Findings {
  const { minAcks } = options;
  const findings: Findings = { doubleLeaders: 0, lost: [], acked: 0, terms: 0 };
  const etcd = new SimulatedEtcd(world);
  const nodes: SimulatedNode[] = [];
  const acked: string[] = [];
  const countLeaders = () => {
    if (nodes.filter(({ acceptsWrites }) => acceptsWrites).length > 1) findings.doubleLeaders++;
  };
  const onLead = (leader: SimulatedNode) => {
    findings.terms++;
    countLeaders();
    if (minAcks === 0) return;
    const held = new Set(leader.log.map(({ value }) => value));
    findings.lost.push(...acked.filter((value) => !held.has(value)));
    // What the new leader has cannot be lost before the next one, so older values need no check.
    acked.splice(0, Math.max(0, acked.length - 200));
  };
  for (let i = 0; i < 3; i++) {
    nodes.push(new SimulatedNode(world, etcd, nodes, i, options, onLead));
  }
  let count = 0;
  const load = () => {
    countLeaders();
    for (const node of nodes) {
      const value = `v${++count}`;
      void node.write(value).then((isAcked) => {
        if (!isAcked) return;
        findings.acked++;
        acked.push(value);
      });
    }
    world.clock.after(world.between([300, 6_000]), load);
  };
  load();
  const anyNode = () => nodes[world.between([0, 2])]!;
  // One node at a time fails for good; pauses and cuts may overlap.
  world.disturb([60_000, 300_000], () => anyNode().crash(world.between([1_000, 30_000])));
  world.disturb([30_000, 200_000], () => anyNode().pause(world.between([500, 40_000])));
  world.disturb([60_000, 400_000], () => {
    const node = anyNode();
    node.isCut = true;
    world.clock.after(world.between([1_000, 40_000]), () => (node.isCut = false));
  });
  world.disturb([600_000, 3_000_000], () => {
    etcd.isDown = true;
    world.clock.after(world.between([1_000, 60_000]), () => (etcd.isDown = false));
  });
  return findings;
}

test.each([
  { minAcks: 1, hours: campaignSize({ quick: 1, full: 6 }), ttlMs: 30_000, seed: 1 },
  { minAcks: 0, hours: 1, ttlMs: 10_000, seed: 2 },
  { minAcks: 2, hours: 1, ttlMs: 10_000, seed: 3 },
])(
  'cluster: $hours hours of faults with min_acks $minAcks: one leader, no acknowledged loss',
  async ({ hours, seed, ...options }) => {
    const world = simulate(seed);
    const findings = startCluster(world, options);
    await world.runFor(hours * hourMs);
    expect(findings).toMatchObject({ doubleLeaders: 0, lost: [] });
    expect(findings.terms).toBeGreaterThan(hours * 2);
    expect(findings.acked).toBeGreaterThan(hours * 50);
  },
  300_000,
);
