import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { cacheJson, type Handlers } from '@millrace/kit/http';
import { dashboardHandlers } from '../dashboard/handlers.js';
import type { ToolRequest } from '../mcp/tools.js';
import { answerQuestion } from '../operations/answer-question.js';
import type { DaemonContext } from '../operations/context.js';
import { getConfig } from '../operations/get-config.js';
import { getInsights } from '../operations/get-insights.js';
import { getSavings } from '../operations/get-savings.js';
import { getSpend } from '../operations/get-spend.js';
import { getUsage } from '../operations/get-usage.js';
import { listBackends } from '../operations/list-backends.js';
import { listBranches } from '../operations/list-branches.js';
import { rescanBackends } from '../operations/rescan-backends.js';
import { setDefaultBackend } from '../operations/set-default-backend.js';
import { setForceCompact } from '../operations/set-force-compact.js';
import { setThinkingMode } from '../operations/set-thinking-mode.js';
import { think } from '../operations/think.js';
import { updateConfig } from '../operations/update-config.js';
import { updateBackend } from '../operations/update-backend.js';
import { proxyHandlers } from '../proxy/handlers.js';
import type { Caller, Authenticator } from './access/authenticator.js';
import { docsHandlers } from './docs.js';
import { eventHandlers } from './event-handlers.js';
import { inboxHandlers } from './inbox-handlers.js';
import { loginHandlers } from './login-handlers.js';
import { metricsHandlers } from './metrics-handlers.js';
import type { ServedOperations } from '../core/served-operations.js';
import { pipelineHandlers } from './pipeline-handlers.js';
import { questionHandlers } from './question-handlers.js';
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
  const registryJson = cacheJson<DaemonSchema<'Registry'>>();
  return {
    getHealth: () => ({ status: 200, body: { status: 'ok', version: daemonVersion() } }),
    ...docsHandlers(apiDocs),
    ...dashboardHandlers(context.dashboard),
    ...loginHandlers(authenticator),
    listBackends: async () => ({ status: 200, body: registryJson(await listBackends(context)) }),
    rescanBackends: async ({ query: { acp } }) => ({
      status: 200,
      body: await rescanBackends(context, { acp: acp ?? false }),
    }),
    setDefaultBackend: async ({ body }) => ({
      status: 200,
      body: await setDefaultBackend(context, body),
    }),
    setThinkingMode: async ({ body }) => ({
      status: 200,
      body: await setThinkingMode(context, body),
    }),
    updateBackend: async ({ params, body }) => ({
      status: 200,
      body: await updateBackend(context, params.id, body),
    }),
    getUsage: async ({ query }) => ({
      status: 200,
      body: await getUsage(context, { refresh: query.refresh ?? false }),
    }),
    getInsights: async ({ query: { since } }) => ({
      status: 200,
      body: await getInsights(context, { since }),
    }),
    getSpend: async () => ({ status: 200, body: await getSpend(context) }),
    getSavings: async ({ query: { since, bucket, samples } }) => ({
      status: 200,
      body: await getSavings(context, { since, bucket, samples: isYes(samples) }),
    }),
    think: async ({ body, signal }) => ({ status: 200, body: await think(context, body, signal) }),
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
      body: await updateConfig(context, body, principal.name),
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
  switch (operation) {
    case 'listBackends':
      return listBackends(context);
    case 'rescanBackends':
      return rescanBackends(context, { acp: false });
    case 'updateBackend':
      return updateBackend(context, params['id']!, body as never);
    case 'setDefaultBackend':
      return setDefaultBackend(context, body as never);
    case 'setThinkingMode':
      return setThinkingMode(context, body as never);
    case 'setForceCompact':
      return setForceCompact(context, params['id']!, body as never);
    case 'answerQuestion':
      return answerQuestion(context, params['id']!, body as never, `${caller.name} (mcp)`);
    case 'listBranches':
      return listBranches(context, { refresh: false });
    case 'getSpend':
      return getSpend(context);
    case 'getSavings':
      return getSavings(context, { ...query, samples: isYes(query['samples']) });
    default:
      throw new Error(`The operation ${operation} is not available to MCP tools`);
  }
}

function isYes(flag: string | undefined): boolean {
  return flag === '1' || flag === 'true';
}
