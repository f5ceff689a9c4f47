import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { cacheJson, eventStream, docsSite, ok, type Problem } from '@millrace/kit/http';
import { openApiYaml } from '@millrace/contract/documents';
import { Refusal } from '@millrace/kit/errors';
import { dashboardHandlers } from '../dashboard/handlers.js';
import type { ToolRequest } from '../mcp/tools.js';
import type { DaemonContext } from '../operations/context.js';
import { getConfig, getSpend, getUsageBlocks, getUsageValue } from '../operations/operations.js';
import { beyondRights, fail, invalid, type ServedHandlers } from '../core/api.js';
import { proxyHandlers } from '../proxy/handlers.js';
import type { Caller, Authenticator } from './access/authenticator.js';
import {
  inboxHandlers,
  pipelineHandlers,
  planHandlers,
  questionHandlers,
  sessionHandlers,
  workbenchHandlers,
} from './session-handlers.js';
import { agentOperations } from './agent-rights.js';
import { daemonVersion } from './data-directory.js';
import type { EventFlow } from '../events/events.js';

/** Maps each operation of the contract to its implementation. */
export function daemonHandlers(
  context: DaemonContext,
  {
    apiDocs,
    clock,
    random,
    authenticator,
  }: { apiDocs: boolean; clock: Clock; random: Random; authenticator: Authenticator },
): ServedHandlers {
  const { backends, insights, savings, sessions, settings, thinker, usage } = context;
  const registryJson = cacheJson<DaemonSchema<'Registry'>>();
  const handlers: ServedHandlers = {
    getHealth: ok(() => ({ status: 'ok', version: daemonVersion() })),
    ...docsHandlers(apiDocs),
    ...dashboardHandlers(context.dashboard),
    ...loginHandlers(authenticator),
    listBackends: ok(async () => registryJson(await listBackends(backends))),
    rescanBackends: ok(({ query: { acp } }) => rescanBackends(backends, { acp: acp ?? false })),
    setDefaultBackend: ok(async ({ body }) =>
      backends.document(await backends.setDefault(body.id)),
    ),
    setThinkingMode: ok(({ body }) => backends.setThinkingMode(body.mode)),
    updateBackend: ok(({ params, body }) => updateBackend(backends, params.id, body)),
    getUsage: ok(({ query }) => usage.read({ refresh: query.refresh ?? false })),
    getInsights: async ({ query: { since } }) => {
      if (insights) return { status: 200, body: await insights.read(since, () => sessions.list()) };
      throw fail(
        'FEATURE_DISABLED',
        'The setting insights is off. Set insights to true and restart the daemon.',
      );
    },
    getSpend: ok(() => getSpend(context)),
    getUsageBlocks: ok(({ query: { backend } }) => getUsageBlocks(context, backend)),
    getUsageValue: ok(() => getUsageValue(context)),
    getPrometheusMetrics: async () => ({
      status: 200,
      contentType: context.series.contentType as 'text/plain',
      content: Buffer.from(await context.series.text()),
    }),
    getSavings: ok(({ query: { since, bucket, samples } }) =>
      savings.report({ since, bucket, samples: isYes(samples) }),
    ),
    think: ok(({ body, signal }) => thinker.think(body.prompt, signal)),
    ...sessionHandlers(context, clock),
    ...workbenchHandlers(context),
    ...pipelineHandlers(context),
    ...planHandlers(context),
    ...eventHandlers(context, clock),
    ...queueHandlers(context),
    ...inboxHandlers(context),
    ...questionHandlers(context, { clock, random }),
    ...metricsHandlers(context),
    backupDaemon: async ({ query: { since_seq: sinceSeq } }) => ({
      status: 200,
      contentType: 'application/octet-stream',
      content: await backupOf(context, sinceSeq),
    }),
    getConfig: ok(({ principal }) => getConfig(context, principal.access)),
    updateConfig: ok(({ body, principal }) => settings.update(body, principal.name)),
    ...proxyHandlers(context.upstreams, clock),
    postMcp: async (call) => {
      const { body, exchange, principal, log } = call;
      // Loaded on first use: the MCP library takes longer to load than the rest of the daemon.
      const { answerMcp } = await import('../mcp/server.js');
      const answer = await answerMcp(
        {
          version: daemonVersion(),
          log,
          access: principal.access,
          call: (request) => callTool(context, handlers, request, call),
        },
        exchange.headers,
        body,
      );
      // The transport returns any of the statuses of the contract, which the types cannot express.
      return answer as { status: 202 };
    },
  };
  return handlers;
}

/** Runs the operation of an MCP tool with the code that serves REST. */
async function callTool(
  { backends }: DaemonContext,
  handlers: ServedHandlers,
  { operation, params = {}, query = {}, body }: ToolRequest,
  call: { principal: Caller; signal: AbortSignal; log: Log },
): Promise<object> {
  if (call.principal.agent !== undefined && !agentOperations.has(operation)) throw beyondRights();
  // REST answers with text that it keeps.
  if (operation === 'listBackends') return listBackends(backends);
  const handle = handlers[operation] as (call: object) => Promise<{ body?: unknown }>;
  const { principal, signal, log } = call;
  const caller = { ...principal, name: `${principal.name} (mcp)` };
  const given = { params, query, headers: {}, body, principal: caller, signal, log };
  return (await handle(given)).body as object;
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

/** Browser login: a one-time code for the token holder, exchanged for a cookie. */
export function loginHandlers(authenticator: Pick<Authenticator, 'newCode' | 'logIn' | 'logOut'>) {
  return {
    createLoginCode: () => {
      const { code, expiresAt } = authenticator.newCode();
      return { status: 200, body: { code, expires_at: timeText(expiresAt) } };
    },
    logIn: ({ body, exchange: { headers, ip } }) => {
      const { setCookie, expiresAt } = authenticator.logIn(body.code, { headers, ip });
      return {
        status: 200,
        body: { logged_in: true, expires_at: timeText(expiresAt) },
        headers: { 'set-cookie': setCookie },
      };
    },
    logOut: ({ exchange: { headers } }) => ({
      status: 200,
      body: { logged_in: false, expires_at: null },
      headers: { 'set-cookie': authenticator.logOut({ headers }).setCookie },
    }),
  } satisfies Partial<ServedHandlers>;
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}

/** The bytes of a backup. What the engine refuses is refused before the first of them. */
async function backupOf(
  { database }: Pick<DaemonContext, 'database'>,
  sinceSeq: number | undefined,
): Promise<AsyncIterable<Uint8Array>> {
  return database.backupBytes({ batches: true, sinceSeq }).catch((error: unknown) => {
    if (error instanceof Refusal)
      throw invalid('since_seq', `cannot be used: ${error.detail.replace(/\.$/, '')}`);
    throw error;
  });
}

/** Resource usage and branch status of agents. */
export function metricsHandlers({
  metrics,
  branches,
  spend,
}: Pick<DaemonContext, 'metrics' | 'branches' | 'spend'>) {
  return {
    getMetrics: async () => {
      const [now, scan] = await Promise.all([metrics.read(), spend?.progress()]);
      return { status: 200, body: scan ? { ...now, transcript_scan: scan } : now };
    },
    getMetricsHistory: ok(({ query: { since, step } }) => metrics.history({ since, step })),
    listBranches: async ({ query }) => {
      if (query.refresh) await branches.refresh();
      return { status: 200, body: { branches: await branches.list() } };
    },
  } satisfies Partial<ServedHandlers>;
}

export function queueHandlers(context: Pick<DaemonContext, 'queueTasks'>) {
  return {
    receiveQueueTask: async ({ headers, body, exchange }) => ({
      status: 202,
      body: await context.queueTasks.receive({
        headers,
        contentType: exchange.headers['content-type'],
        // The raw bytes, which the generated types declare as text.
        body: body as unknown as Uint8Array | undefined,
      }),
      headers: { 'X-Queue-Async': 'true' },
    }),
  } satisfies Partial<ServedHandlers>;
}

const reconnectMs = 2_000;
/** At shutdown, how long a client has to read what was already sent. */
const farewellMs = 1_000;

export function eventHandlers(context: Pick<DaemonContext, 'events'>, clock: Clock) {
  return {
    streamEvents: ({ headers, query, signal, ending, exchange }) => {
      const lastId = headers['Last-Event-ID'] ?? query.last_event_id;
      const over = AbortSignal.any([signal, ending]);
      const { socket } = exchange.peer;
      const leave = () => {
        // A client that does not read would otherwise delay shutdown until the drain timeout.
        if (ending.aborted) {
          clock.after(farewellMs, () => socket.writableLength > 0 && socket.destroy());
        }
      };
      over.addEventListener('abort', leave, { once: true });
      const flow = context.events.follow(lastId, over);
      return {
        status: 200,
        contentType: 'text/event-stream',
        content: textOf(flow, { clock, signals: [over] }),
        // Disables response buffering in nginx, which would delay every event.
        headers: { 'x-accel-buffering': 'no' },
      };
    },
  } satisfies Partial<ServedHandlers>;
}

async function* textOf(
  { startId, events }: EventFlow,
  options: Parameters<typeof eventStream>[1],
): AsyncGenerator<string> {
  // An id without data dispatches no event, but sets the client's Last-Event-ID.
  yield `retry: ${reconnectMs}\n${startId === undefined ? '' : `id: ${startId}\n`}\n`;
  yield* eventStream(events, options);
}

const site = docsSite({
  title: 'Millrace agent daemon',
  document: '/api/docs/openapi.yaml',
  assets: '/api/docs/assets',
});

/** Serves the API documentation page and the OpenAPI document, without network access. */
export function docsHandlers(isOn: boolean) {
  let yaml: Buffer | undefined;
  const check = () => {
    if (!isOn) throw fail('FEATURE_DISABLED', 'The API documentation is off (setting api_docs).');
  };
  return {
    getDocs: () => {
      check();
      const { bytes, contentType } = site.page;
      return {
        status: 200,
        contentType: contentType as 'text/html',
        content: bytes,
        headers: site.headers,
      };
    },
    getOpenapi: () => {
      check();
      yaml ??= Buffer.from(openApiYaml('daemon'));
      return { status: 200, contentType: 'application/yaml', content: yaml };
    },
    getDocsAsset: ({ params }) => {
      check();
      const asset = site.asset(params.file);
      if (!asset) throw fail('NOT_FOUND', `The documentation has no file ${params.file}.`);
      return {
        status: 200,
        contentType: asset.contentType as 'text/css',
        content: asset.bytes,
        headers: site.headers,
      };
    },
  } satisfies Partial<ServedHandlers>;
}

/**
 * Shapes a problem document as in the daemon's contract: without `instance` (X-Request-Id has it),
 * with `error` as a copy of `detail`, and with a code even for requests that could not be parsed.
 */
export function daemonProblem({ type, title, status, detail, code, ...rest }: Problem): object {
  const members = Object.entries(rest).filter(([name]) => name !== 'instance');
  return {
    type,
    title,
    status,
    detail,
    code: code ?? (status === 413 ? 'PAYLOAD_TOO_LARGE' : 'INVALID_REQUEST'),
    error: detail,
    ...Object.fromEntries(members),
  };
}
