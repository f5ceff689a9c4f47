import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemon } from '../api/client.js';

type Choice = DaemonSchema<'ForceCompactChoice'>;

/** The operations on one session. */
export function sessionActions(id: string) {
  const path = { id };
  return {
    send: (text: string) => daemon.call('sendToSession', { path, body: { text } }),
    stop: () => daemon.call('stopSession', { path }),
    restart: () => daemon.call('restartSession', { path }),
    serve: () => daemon.call('serveSession', { path }),
    remove: () => daemon.call('deleteSession', { path }),
    setForceCompact: (state: Choice) => daemon.call('setForceCompact', { path, body: { state } }),
  };
}

export function spawn(request: DaemonSchema<'SpawnRequest'>, key: string) {
  return daemon.call('spawnSession', { headers: { 'idempotency-key': key }, body: request });
}
