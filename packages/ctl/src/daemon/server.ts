import type { Server } from '../base/declared.js';
import type { CallOperation } from '../base/run-operation.js';
import type { Tools } from '../base/tools.js';
import { daemonApi, withDaemon, type DaemonApi } from './api.js';

/** Calls operations of the daemon for declared commands. */
export function daemonServer(tools: Tools): Server {
  return {
    connect: withDaemon,
    async call(command, args, flags) {
      const { runOperation } = await import('../base/run-operation.js');
      const api = await daemonApi(flags, tools);
      const call = api.call as unknown as CallOperation;
      const helped: CallOperation = (operation, { path, query, body }) =>
        call(operation, { path, query, ...(body && { body }) }).catch((error: unknown) =>
          nameBackend(api, args[0] ?? '', error),
        );
      await runOperation(command, { args, flags }, helped, tools);
    },
  };
}

/** Adds "did you mean" if the daemon does not know the backend. */
async function nameBackend(api: DaemonApi, id: string, error: unknown): Promise<never> {
  const [{ Refusal }, { suggestion }] = await Promise.all([
    import('@millrace/kit/errors'),
    import('@millrace/kit/nearest'),
  ]);
  if (!(error instanceof Refusal) || error.code !== 'BACKEND_NOT_FOUND') throw error;
  const { backends } = await api.call('listBackends');
  const ids = backends.map((row) => row.id);
  const meant = suggestion(id, ids) || `. Known backends: ${ids.join(', ')}`;
  const detail = `no backend is called "${id}"${meant}`;
  throw new Refusal(error.code, /[?]$/.test(detail) ? detail : `${detail}.`);
}
