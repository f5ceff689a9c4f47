import { daemonCodes } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';
import { bindOperations, parseJson, wellFormed, type BoundApp } from '@millrace/kit/http';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { World } from '@millrace/kit/world';
import type { DaemonContext } from '../operations/context.js';
import { parseYamlBody } from '../pipelines/definition.js';
import { anyone, checkAccess, type Caller, type Authenticator } from './access/authenticator.js';
import { daemonHandlers, daemonProblem } from './handlers.js';
import { beyondRights, type ServedOperations } from '../core/api.js';
import { agentOperations } from './agent-rights.js';

export interface AppParts {
  world: World;
  context: DaemonContext;
  authenticator: Authenticator;
  apiDocs: boolean;
  peerMemory?: PeerMemory;
  maxConnections?: number;
  /** Called for every response that the contract does not describe. For tests. */
  onUndocumentedResponse?: ((difference: string) => void) | undefined;
}

/** The daemon's contract as a server. */
export function daemonApp({ world, context, authenticator, ...rest }: AppParts): BoundApp {
  const { apiDocs, peerMemory, maxConnections, onUndocumentedResponse } = rest;
  return bindOperations<ServedOperations, Caller>({
    world,
    document: openApiDocument('daemon'),
    codes: daemonCodes,
    httpErrorCodes: { overloaded: 'TOO_MANY_ATTEMPTS' },
    peerMemory,
    maxConnections,
    handlers: daemonHandlers(context, { ...world, apiDocs, authenticator }),
    // The store takes only well-formed Unicode.
    bodyParsers: {
      'application/json': (bytes) => wellFormed(parseJson(bytes)),
      'application/yaml': (bytes) => wellFormed(parseYamlBody(bytes)),
    },
    shapeProblem: daemonProblem,
    admit: ({ headers }) => authenticator.admit({ headers }),
    authenticate: ({ headers, ip }) => authenticator.identify({ headers, ip }),
    authorize: (caller, { id, extensions }) => {
      if (caller.agent !== undefined && !agentOperations.has(id)) throw beyondRights();
      checkAccess(caller, extensions['x-access'] === 'read' ? 'read' : 'write');
    },
    anonymous: anyone,
    principalName: ({ name }) => name,
    protectedPrefixes: ['/api/v1', '/mcp'],
    quietOperations: ['getHealth'],
    quietReads: true,
    // Responses are short-lived and may be private; static files override this.
    defaultHeaders: { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' },
    ...(onUndocumentedResponse && { onUndocumentedResponse }),
  });
}
