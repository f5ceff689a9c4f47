import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import type { Simulation } from '@millrace/kit/simulation';
import { openEmbeddedStore } from '../src/storage/embedded/open.js';
import type { TaskStore } from '../src/storage/port/task-store.js';

/** Gives `use` the embedded store in a folder of its own; virtual time waits for its answers. */
export async function withRealDisk<T>(
  world: Simulation,
  use: (disk: TaskStore) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'queue-simulation-'));
  const engine = { clock: systemClock, random: systemRandom, log: silentLog };
  const store = await openEmbeddedStore(folder, engine);
  const disk = new Proxy(store, {
    get: (target, property) => {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(member, target, args);
        return answer instanceof Promise
          ? world.pending(answer, `disk.${String(property)}`)
          : answer;
      };
    },
  });
  try {
    return await use(disk);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
