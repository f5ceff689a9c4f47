import type { DaemonSchema } from '@millrace/contract/daemon';
import { call, daemon } from '../api/client.js';

type Choice = DaemonSchema<'ForceCompactChoice'>;

/** What can be done to one agent. */
export function sessionActions(id: string) {
  const params = { path: { id } };
  return {
    send: (text: string) =>
      call(daemon.POST('/api/v1/sessions/{id}:send', { params, body: { text } })),
    stop: () => call(daemon.POST('/api/v1/sessions/{id}:stop', { params })),
    restart: () => call(daemon.POST('/api/v1/sessions/{id}:restart', { params })),
    remove: () => call(daemon.DELETE('/api/v1/sessions/{id}', { params })),
    setForceCompact: (state: Choice) =>
      call(daemon.PATCH('/api/v1/sessions/{id}/force-compact', { params, body: { state } })),
  };
}

export function spawn(request: DaemonSchema<'SpawnRequest'>, key: string) {
  return call(
    daemon.POST('/api/v1/spawn', {
      params: { header: { 'Idempotency-Key': key } },
      body: request,
    }),
  );
}
