import { daemonCodes } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';
import { bindOperations, type BoundApp } from '@millrace/kit/http';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { World } from '@millrace/kit/world';
import type { DaemonContext } from '../operations/context.js';
import { parseYamlBody } from '../pipelines/yaml-body.js';
import { anyone, checkAccess, type Caller, type Gate } from './access/gate.js';
import { daemonHandlers } from './handlers.js';
import type { ServedOperations } from '../core/served-operations.js';
import { daemonProblem } from './problem.js';

export interface AppParts {
  world: World;
  context: DaemonContext;
  gate: Gate;
  apiDocs: boolean;
  peerMemory?: PeerMemory;
  maxConnections?: number;
  /** Hears of every answer that the contract does not describe. For tests. */
  onUndocumentedAnswer?: ((difference: string) => void) | undefined;
}

/** The daemon's contract as a server. */
export function daemonApp({ world, context, gate, ...rest }: AppParts): BoundApp {
  const { apiDocs, peerMemory, maxConnections, onUndocumentedAnswer } = rest;
  return bindOperations<ServedOperations, Caller>({
    world,
    document: openApiDocument('daemon'),
    codes: daemonCodes,
    glueCodes: { overloaded: 'TOO_MANY_ATTEMPTS' },
    peerMemory,
    maxConnections,
    handlers: daemonHandlers(context, { apiDocs, clock: world.clock, gate }),
    bodyParsers: { 'application/yaml': parseYamlBody },
    shapeProblem: daemonProblem,
    admit: ({ headers }) => gate.admit({ headers }),
    authenticate: ({ headers, ip }) => gate.identify({ headers, ip }),
    authorize: (caller, { extensions }) => {
      checkAccess(caller, extensions['x-access'] === 'read' ? 'read' : 'write');
    },
    anonymous: anyone,
    principalName: ({ name }) => name,
    protectedPrefixes: ['/api/v1', '/mcp'],
    quietOperations: ['getHealth'],
    quietReads: true,
    // What the daemon says is true for a moment, and some of it is private; files say otherwise.
    defaultHeaders: { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' },
    ...(onUndocumentedAnswer && { onUndocumentedAnswer }),
  });
}
