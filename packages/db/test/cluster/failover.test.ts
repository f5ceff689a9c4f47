import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { hasEtcd } from './support/etcd.js';

const script = fileURLToPath(new URL('../../../../scripts/failover.mjs', import.meta.url));
/** At full size each of the eight kinds of fault once, in an order from the seed. */
const rounds = campaignSize({ quick: 2, full: 8 });

/** Set MILLRACE_SEED to repeat the faults of a failed run. */
const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 1_000_000);

test.skipIf(!hasEtcd)(
  `fail-over: ${rounds} faults of different kinds lose nothing (seed ${seed}; needs the program etcd)`,
  async () => {
    const args = ['--no-build', '--rounds', rounds, '--seed', seed, '--ttl', 3].map(String);
    const child = spawn(process.execPath, [script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let errors = '';
    child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
    child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()));
    await once(child, 'close');
    expect(out, errors).toContain('"ok":true');
    const injected = [...errors.matchAll(/^round \d+: (.*), writes back/gm)];
    expect(new Set(injected.map(([, name]) => name)).size).toBe(rounds);
  },
  900_000,
);
