import type { Clock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { StorageUnavailable } from '../../port/task-store.js';
import { serverSessions, type Connections } from '../connection/connections.js';

export const transferSessions = 'millrace-migrate';

/** The database may take this long to close the session of a killed process. */
const maxChecks = 20;
const checkIntervalMs = 250;

const others = {
  name: '',
  text: `SELECT application_name AS name, count(*) AS sessions FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND application_name IN ('${serverSessions}', '${transferSessions}')
    GROUP BY application_name`,
};

/**
 * Refuses to transfer while servers or other transfers are connected. Call it before opening more
 * sessions.
 */
export async function refuseOthers(connections: Connections, clock: Clock): Promise<void> {
  for (let checks = 1; ; checks++) {
    const found = await namesOf(connections);
    if (found.length === 0) return;
    if (checks < maxChecks) await clock.sleep(checkIntervalMs);
    else if (found.includes(serverSessions)) {
      throw new UsageError(
        'storage: servers are connected to this database. Stop all of them first.',
      );
    } else {
      throw new UsageError('storage: another `ctl queue migrate` is running on this database.');
    }
  }
}

/** Compatible databases may not have this view. */
async function namesOf(connections: Connections): Promise<string[]> {
  try {
    const found = await connections.query<{ name: string }>(others);
    return found.map(({ name }) => name);
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    return [];
  }
}
