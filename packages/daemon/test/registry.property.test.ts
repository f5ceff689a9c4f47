import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

const ids = ['amp', 'claude', 'codex', 'gemini', 'goose'];
const tiers = ['free', 'subscription', 'pay_per_use', 'unclassified'] as const;

let daemon: TestDaemon;
let clis: FakeClis;

beforeAll(async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-property-'));
  clis = new FakeClis(join(home, 'bin'));
  clis.addEmpty(...ids);
  daemon = await startDaemon({ home, path: clis.path });
});
afterAll(() => daemon.dispose());

type Action =
  | { kind: 'rescan' }
  | { kind: 'read' }
  | { kind: 'default'; id: string }
  | { kind: 'tier'; id: string; tier: (typeof tiers)[number] }
  | { kind: 'enabled'; id: string; enabled: boolean }
  | { kind: 'mode'; mode: 'local_only' | 'free_plus_local' };

const id = fc.constantFrom(...ids);
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ kind: fc.constant('rescan' as const) }),
  fc.record({ kind: fc.constant('read' as const) }),
  fc.record({ kind: fc.constant('default' as const), id }),
  fc.record({ kind: fc.constant('tier' as const), id, tier: fc.constantFrom(...tiers) }),
  fc.record({ kind: fc.constant('enabled' as const), id, enabled: fc.boolean() }),
  fc.record({
    kind: fc.constant('mode' as const),
    mode: fc.constantFrom('local_only' as const, 'free_plus_local' as const),
  }),
);

/** Each client owns some backends, so that what it last wrote there is what must be there. */
const client = fc.array(action, { minLength: 1, maxLength: 12 });

function expectOneDefault({ backends }: DaemonSchema<'Registry'>): void {
  expect(backends.filter((each) => each.default).length).toBeLessThanOrEqual(1);
  expect(backends.map((each) => each.id)).toEqual(backends.map((each) => each.id).sort());
}

test('many clients at once: at most one default at any moment, and no preference is lost', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(client, { minLength: 2, maxLength: ids.length }), async (clients) => {
      const { api } = daemon;
      const wanted = new Map<string, { tier?: string; enabled?: boolean }>();
      const accepted = new Set<string>();
      const before = await api.registry();

      const perform = async (mine: string, step: Action): Promise<void> => {
        // Preferences of one backend are written by one client alone, in order.
        const note = (change: object) => wanted.set(mine, { ...wanted.get(mine), ...change });
        switch (step.kind) {
          case 'rescan':
            return expectOneDefault(await api.ok('POST', '/api/v1/backends/rescan'));
          case 'read':
            return expectOneDefault(await api.registry());
          case 'tier': {
            const row = await api.ok('PATCH', `/api/v1/backends/${mine}`, { tier: step.tier });
            expect(row.tier).toBe(step.tier);
            return void note({ tier: step.tier });
          }
          case 'enabled': {
            const { enabled } = step;
            const row = await api.ok('PATCH', `/api/v1/backends/${mine}`, { enabled });
            expect(row.enabled).toBe(enabled);
            return void note({ enabled });
          }
          case 'mode':
            return void (await api.ok('PUT', '/api/v1/backends/thinking-mode', {
              mode: step.mode,
            }));
          case 'default': {
            const path = '/api/v1/backends/default';
            const reply = await api.send({ method: 'PUT', path, body: { id: step.id } });
            expect([200, 409]).toContain(reply.status);
            if (reply.status !== 200) return;
            expectOneDefault(reply.json);
            const isNow = reply.json.backends.find((each: { id: string }) => each.id === step.id);
            expect(isNow.default).toBe(true);
            accepted.add(step.id);
          }
        }
      };
      const runClient = async (steps: Action[], index: number) => {
        for (const step of steps) await perform(ids[index]!, step);
      };
      await Promise.all(clients.map(runClient));

      const after = await api.registry();
      expectOneDefault(after);
      const now = after.backends.find((each) => each.default)?.id;
      if (accepted.size > 0) expect(accepted).toContain(now);
      else expect(now).toBe(before.backends.find((each) => each.default)?.id);
      for (const [which, change] of wanted) {
        expect(after.backends.find((each) => each.id === which)).toMatchObject(change);
      }
    }),
    { numRuns: 25 },
  );
});

test('callers who rescan at the same time share the work', async () => {
  const { api } = daemon;
  const replies: DaemonSchema<'Registry'>[] = await Promise.all(
    Array.from({ length: 40 }, () => api.ok('POST', '/api/v1/backends/rescan')),
  );
  const scans = new Set(replies.map(({ backends }) => backends[0]!.detected_at));
  expect(scans.size).toBeLessThan(replies.length);
});

test('rescan: sees what was installed before the call, even during another rescan', async () => {
  const { api } = daemon;
  for (let round = 0; round < 5; round++) {
    clis.remove('goose');
    const early = api.ok('POST', '/api/v1/backends/rescan');
    clis.addEmpty('goose');
    const { backends } = await api.ok('POST', '/api/v1/backends/rescan');
    await early;
    const goose = backends.find((each: { id: string }) => each.id === 'goose');
    expect(goose.installed).toBe(true);
  }
});
