import { createServer } from 'node:net';
import type { Part } from '../up/parts.js';
import type { Check } from './check.js';
import { listenerOn, type Holder } from './port-holder.js';

/** Checks that the default ports are free, or names the process that uses them. */
export function portChecks(parts: readonly Part[], interrupted: AbortSignal): Check[] {
  return parts.flatMap((part) =>
    part.addresses.map(({ port, listener }) => ({
      name: `port ${port}`,
      async run() {
        const use = `${part.title}, ${listener}`;
        const refused = await tryToListen(port);
        if (refused === null) return { status: 'ok', finding: `free (${use})` };
        if (refused !== 'EADDRINUSE') {
          return {
            status: 'warn',
            finding: `cannot be used: ${refused} (${use})`,
            advice: 'Give the server another address.',
          };
        }
        const holder = await listenerOn(port, interrupted);
        if (holder && isServerOf(part, holder)) {
          return { status: 'ok', finding: `in use by Millrace, pid ${holder.pid} (${use})` };
        }
        return {
          status: 'warn',
          finding: `used by ${nameOf(holder)} (${use})`,
          advice: 'Stop it, or give the server another address.',
        };
      },
    })),
  );
}

/** Null if the port is free, else the system's reason. */
function tryToListen(port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      server.close(() => resolve(null));
    });
  });
}

/** Whether it is the server that should listen there, started by `ctl NAME serve`. */
function isServerOf({ name }: Part, { command }: Holder): boolean {
  return new RegExp(`[/ ](?:ctl|millrace)(\\.js)? ${name} serve( |$)`).test(command);
}

function nameOf(holder: Holder | null): string {
  return holder ? `${holder.name} (pid ${holder.pid})` : 'a process of another user';
}
