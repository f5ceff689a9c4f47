import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { cacheJson, type Handlers } from '@millrace/kit/http';
import { dashboardHandlers } from '../dashboard/handlers.js';
import type { ToolRequest } from '../mcp/tools.js';
import type { DaemonContext } from '../operations/context.js';
import { getConfig } from '../operations/get-config.js';
import { getSpend } from '../operations/get-spend.js';
import { setForceCompact } from '../operations/set-force-compact.js';
import { fail } from '../core/refusals.js';
import { proxyHandlers } from '../proxy/handlers.js';
import type { Caller, Authenticator } from './access/authenticator.js';
import { docsHandlers } from './docs.js';
import { eventHandlers } from './event-handlers.js';
import { inboxHandlers } from './inbox-handlers.js';
import { loginHandlers } from './login-handlers.js';
import { metricsHandlers } from './metrics-handlers.js';
import type { ServedOperations } from '../core/served-operations.js';
import { pipelineHandlers } from './pipeline-handlers.js';
import { answerQuestion, questionHandlers } from './question-handlers.js';
import { queueHandlers } from './queue-handlers.js';
import { sessionHandlers } from './session-handlers.js';
import { daemonVersion } from './version.js';
import { workbenchHandlers } from './workbench-handlers.js';

/** Maps each operation of the contract to its implementation. */
export function daemonHandlers(
  context: DaemonContext,
  {
    apiDocs,
    clock,
    authenticator,
  }: { apiDocs: boolean; clock: Clock; authenticator: Authenticator },
): Handlers<ServedOperations, Caller> {
  const { backends, insights, savings, sessions, settings, thinker, usage } = context;
  const registryJson = cacheJson<DaemonSchema<'Registry'>>();
  return {
    getHealth: () => ({ status: 200, body: { status: 'ok', version: daemonVersion() } }),
    ...docsHandlers(apiDocs),
    ...dashboardHandlers(context.dashboard),
    ...loginHandlers(authenticator),
    listBackends: async () => ({ status: 200, body: registryJson(await listBackends(backends)) }),
    rescanBackends: async ({ query: { acp } }) => ({
      status: 200,
      body: await rescanBackends(backends, { acp: acp ?? false }),
    }),
    setDefaultBackend: async ({ body }) => ({
      status: 200,
      body: backends.document(await backends.setDefault(body.id)),
    }),
    setThinkingMode: async ({ body }) => ({
      status: 200,
      body: await backends.setThinkingMode(body.mode),
    }),
    updateBackend: async ({ params, body }) => ({
      status: 200,
      body: await updateBackend(backends, params.id, body),
    }),
    getUsage: async ({ query }) => ({
      status: 200,
      body: await usage.read({ refresh: query.refresh ?? false }),
    }),
    getInsights: async ({ query: { since } }) => {
      if (insights) return { status: 200, body: await insights.read(since, () => sessions.list()) };
      throw fail(
        'FEATURE_DISABLED',
        'The setting insights is off. Set insights to true and restart the daemon.',
      );
    },
    getSpend: async () => ({ status: 200, body: await getSpend(context) }),
    getSavings: async ({ query: { since, bucket, samples } }) => ({
      status: 200,
      body: await savings.report({ since, bucket, samples: isYes(samples) }),
    }),
    think: async ({ body, signal }) => ({
      status: 200,
      body: await thinker.think(body.prompt, signal),
    }),
    ...sessionHandlers(context),
    ...workbenchHandlers(context),
    ...pipelineHandlers(context),
    ...eventHandlers(context, clock),
    ...queueHandlers(context),
    ...inboxHandlers(context),
    ...questionHandlers(context),
    ...metricsHandlers(context),
    getConfig: ({ principal }) => ({ status: 200, body: getConfig(context, principal.access) }),
    updateConfig: async ({ body, principal }) => ({
      status: 200,
      body: await settings.update(body, principal.name),
    }),
    ...proxyHandlers(context.upstreams, clock),
    postMcp: async ({ body, exchange, principal, log }) => {
      // Loaded on first use: the MCP library takes longer to load than the rest of the daemon.
      const { answerMcp } = await import('../mcp/http.js');
      const answer = await answerMcp(
        {
          version: daemonVersion(),
          log,
          access: principal.access,
          call: (request) => callTool(context, request, principal),
        },
        exchange.headers,
        body,
      );
      // The transport returns any of the statuses of the contract, which the types cannot express.
      return answer as { status: 202 };
    },
  };
}

/** Runs the operation of an MCP tool with the code that serves REST. */
async function callTool(
  context: DaemonContext,
  { operation, params = {}, query = {}, body }: ToolRequest,
  caller: Caller,
): Promise<object> {
  const { backends, branches, savings } = context;
  const id = params['id']!;
  switch (operation) {
    case 'listBackends':
      return listBackends(backends);
    case 'rescanBackends':
      return rescanBackends(backends, { acp: false });
    case 'updateBackend':
      return updateBackend(backends, id, body as never);
    case 'setDefaultBackend':
      return backends.document(
        await backends.setDefault((body as DaemonSchema<'SetDefaultRequest'>).id),
      );
    case 'setThinkingMode':
      return backends.setThinkingMode((body as DaemonSchema<'SetThinkingModeRequest'>).mode);
    case 'setForceCompact':
      return setForceCompact(context, id, body as never);
    case 'answerQuestion':
      return answerQuestion(context, id, body as never, `${caller.name} (mcp)`);
    case 'listBranches':
      return { branches: await branches.list() };
    case 'getSpend':
      return getSpend(context);
    case 'getSavings':
      return savings.report({ ...query, samples: isYes(query['samples']) });
    default:
      throw new Error(`The operation ${operation} is not available to MCP tools`);
  }
}

/** Every known backend, installed or not, and the settings. */
async function listBackends(backends: DaemonContext['backends']) {
  return backends.document(await backends.read());
}

/**
 * Detects backends again. Callers during a running scan share the next one. With `acp`, programs
 * are also asked whether they speak the Agent Client Protocol.
 */
async function rescanBackends(backends: DaemonContext['backends'], { acp }: { acp: boolean }) {
  const scanned = await backends.rescan();
  return backends.document(acp ? await backends.findAcp() : scanned);
}

/** Sets preferences of one backend; absent ones stay. */
async function updateBackend(
  backends: DaemonContext['backends'],
  id: string,
  { tier, enabled }: DaemonSchema<'UpdateBackendRequest'>,
) {
  return backends.row(await backends.update(id, { tier, enabled }));
}

function isYes(flag: string | undefined): boolean {
  return flag === '1' || flag === 'true';
}
