import type { Clock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { StorageUnavailable } from '../../task-store.js';
import { serverSessions, type Connections } from '../connections.js';

export const transferSessions = 'millrace-migrate';

/** So long the database may take to notice that a killed program is gone. */
const mostLooks = 20;
const betweenLooksMs = 250;

const others = {
  name: '',
  text: `SELECT application_name AS name, count(*) AS sessions FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND application_name IN ('${serverSessions}', '${transferSessions}')
    GROUP BY application_name`,
};

/** Tasks are moved while nobody else works on them. Asked before any other session is opened. */
export async function refuseOthers(connections: Connections, clock: Clock): Promise<void> {
  for (let looks = 1; ; looks++) {
    const found = await namesOf(connections);
    if (found.length === 0) return;
    if (looks < mostLooks) await clock.sleep(betweenLooksMs);
    else if (found.includes(serverSessions)) {
      throw new UsageError(
        'storage: servers are at work on this database: stop all of them first.',
      );
    } else {
      throw new UsageError('storage: another `ctl queue migrate` is at work on this database.');
    }
  }
}

/** Other engines may keep no such list; nobody is found there. */
async function namesOf(connections: Connections): Promise<string[]> {
  try {
    const found = await connections.query<{ name: string }>(others);
    return found.map(({ name }) => name);
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    return [];
  }
}
