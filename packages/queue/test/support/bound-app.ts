import { TaskWaits } from '../../src/operations/base/task-waits.js';
import { roleLevels, TurnsByKey } from '../../src/operations/base/context.js';
import { openApiDocument } from '@millrace/contract/documents';
import { systemClock } from '@millrace/kit/clock';
import { schemasOf } from '@millrace/kit/http';
import { silentLog } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { parseAllowlist } from '@millrace/kit/outbound';
import { systemRandom } from '@millrace/kit/random';
import { parseTokens } from '@millrace/kit/tokens';
import { bodyChecks } from '../../src/operations/base/bodies.js';
import { queueApp } from '../../src/server/app.js';
import { Cursors } from '../../src/operations/base/cursors.js';
import { Load, SubmitLimits } from '../../src/operations/base/limits.js';
import { History, TaskObserver } from '../../src/background/index.js';
import { Readiness } from '../../src/operations/base/readiness.js';
import { MemoryStore } from './memory-store/index.js';
import { idleDelivery } from './idle-delivery.js';
import { tokensYaml } from './server.js';

/** The HTTP app without a socket. */
export function boundApp() {
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const schemas = schemasOf(openApiDocument('queue'));
  const store = new MemoryStore();
  const history = new History({ store, clock: systemClock, instance: 'test' });
  const observer = new TaskObserver({ history, clock: systemClock });
  return queueApp({
    context: {
      ...world,
      store,
      delivery: idleDelivery({ store, observer }),
      history,
      observer,
      secretsFault: () => undefined,
      background: { schedulesChanged: () => undefined, jobsChanged: () => undefined },
      findSecret: () => undefined,
      allowlist: parseAllowlist([]),
      cursors: new Cursors(new Uint8Array(32), systemClock),
      submitLimits: new SubmitLimits(systemClock, 0),
      checks: bodyChecks(schemas),
      readiness: new Readiness({ ...world, probe: () => store.probe() }),
      maxWaitingClaims: 2_000,
      scheduleLimits: { maxCount: 1_000, maxBytes: 2 ** 24 },
      scheduleWrites: new TurnsByKey(),
      waits: new TaskWaits({
        store,
        clock: systemClock,
        load: { enter: () => {}, leave: () => {} },
      }),
    },
    schemas,
    tokens: { current: parseTokens(tokensYaml, 'tokens.yaml', roleLevels) },
    load: new Load({ ...world, maxInflight: 1, targetMs: 0 }),
    metrics: createMetrics('queue'),
    accessLog: 'off',
  });
}
