import { daemonCodes } from '@millrace/contract/daemon';
import { addressText, isLoopback, type LoadedConfig } from '@millrace/kit/config';
import { drainHttp, listen, metricsApp, type BoundApp } from '@millrace/kit/http';
import { webhookGuard } from '@millrace/kit/outbound';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { createOutbound } from '@millrace/wire/http1';
import { DashboardSite } from '../dashboard/site.js';
import { Events } from '../events/events.js';
import { Reports } from '../events/reports.js';
import { Insights } from '../insights/insights.js';
import { DaemonSeries } from '../metrics/prometheus.js';
import type { DaemonContext } from '../operations/context.js';
import { agentOf } from '../core/agent-tree.js';
import type { Caller } from '../core/api.js';
import { upstreamsOf } from '../proxy/upstream.js';
import { agentVariables } from '../registry/programs.js';
import { openStore } from '../storage/store.js';
import { Authenticator, portOf } from './access/authenticator.js';
import { Logins, Throttle } from './access/logins.js';
import { ensureToken, Tokens } from './access/tokens.js';
import { fillAcpRows, openAgents, type Agents } from './agents.js';
import { daemonApp } from './app.js';
import {
  defaultDataDirectory,
  loginsFile,
  readOnlyTokenFile,
  storeDirectory,
  tokenFile,
  webhookSecretFile,
  type DaemonSettings,
} from './config.js';
import { privateDirectory, publishAddress } from './data-directory.js';
import { LiveSettings } from './live-settings.js';
import { openAccounts, openPrograms, type Accounts, type Base, type Programs } from './services.js';

export interface DaemonOptions {
  /** Environment used to find and run programs. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Called for every response that the contract does not describe. For tests. */
  onUndocumentedResponse?: (difference: string) => void;
  /** Program of the host of agents over ACP, when this is run from sources. For tests. */
  acpHost?: string | undefined;
  /** Program through which headless agents ask, likewise. For tests. */
  permissionTool?: string | undefined;
}

interface RunningListener {
  readonly listener: string;
  readonly url: string;
}

export interface RunningDaemon {
  readonly listeners: readonly RunningListener[];
  readonly dataDir: string;
  /** Rejects with the reason when the daemon fails without a call of `stop`. */
  readonly ended: Promise<void>;
  /** Graceful shutdown: drains requests in flight, then closes the store. Idempotent. */
  stop(): Promise<void>;
}

/** Opens the store, wires all services together and starts the listener. */
export async function serveDaemon(
  loaded: LoadedConfig<DaemonSettings>,
  world: World,
  options: DaemonOptions,
): Promise<RunningDaemon> {
  const undo = new UndoList();
  try {
    const { tokens, ...base } = await openBase(loaded, world, options, undo);
    const programs = await openPrograms(base);
    const accounts = openAccounts(base, programs.backends);
    const series = new DaemonSeries();
    undo.add(() => series.close());
    const { spawnTimes } = series;
    const agents = await openAgents({ ...base, ...programs, ...accounts, ...options, spawnTimes });
    undo.add(() => agents.close());
    const context = { ...contextOf(base, programs, accounts, agents), series };
    series.show({
      sessions: () => agents.sessions.list(),
      questions: async () => agents.questions.list({ status: 'open', limit: 10_000 }),
      usage: () => accounts.usage.known(),
      spend: () => accounts.spend?.byModel() ?? [],
    });
    return await listenAndServe({ base, programs, context, tokens, options });
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/** The data directory with its store, the tokens, the settings, and the way out. */
async function openBase(
  loaded: LoadedConfig<DaemonSettings>,
  world: World,
  { environment }: DaemonOptions,
  undo: UndoList,
): Promise<Base & { tokens: Tokens }> {
  const { values } = loaded;
  const { clock, log } = world;
  const dataDir = privateDirectory(values.data_dir ?? defaultDataDirectory(environment), log);
  ensureToken(loaded, dataDir, world.random);
  const tokens = new Tokens({
    areRequired: values.auth !== 'none',
    token: { given: values.token, file: tokenFile(dataDir) },
    readOnly: { given: values.read_only_token, file: readOnlyTokenFile(dataDir) },
    log,
  });
  const secretFile = secretFiles(tokens, dataDir);
  const settings = new LiveSettings({ loaded, log, dataDir, secretFile });
  const store = await openStore(storeDirectory(dataDir), world, values.upgrade);
  undo.add(() => store.close());
  const reports = new Reports({ database: store.database, clock, log });
  undo.add(() => reports.close());
  const outbound = createOutbound({ guard: webhookGuard, clock });
  undo.add(() => outbound.close());
  const { agents, backends } = values;
  const variablesFor = agentVariables({ environment, extra: backends.extra, settings: agents });
  const address: Base['address'] = { url: undefined };
  const found = { settings, world, environment, dataDir, store, reports, outbound, address };
  return { ...found, variablesFor, undo, tokens };
}

function contextOf(
  { settings, world, store }: Base,
  { backends }: Programs,
  { thinker, usage, savings, spend }: Accounts,
  agents: Agents,
): Omit<DaemonContext, 'series'> {
  const { clock } = world;
  const { values } = settings;
  return {
    ...agents,
    database: store.database,
    backends,
    events: new Events({ database: store.database, clock }),
    forceCompact: () => settings.values.tokens.force_compact,
    thinker,
    usage,
    savings,
    spend: values.savings ? spend : undefined,
    insights: values.insights && spend ? new Insights({ clock, spend }) : undefined,
    settings,
    dashboard: new DashboardSite(),
    upstreams: upstreamsOf(values, clock),
  };
}

interface ServeParts {
  base: Base;
  programs: Programs;
  context: DaemonContext;
  tokens: Tokens;
  options: DaemonOptions;
}

async function listenAndServe(parts: ServeParts): Promise<RunningDaemon> {
  const { world, settings, dataDir, undo } = parts.base;
  const { clock, log } = world;
  const { values } = settings;
  const { tokens } = parts;
  const authenticator = new Authenticator({
    tokens,
    throttle: new Throttle(clock),
    logins: new Logins({ ...world, file: loginsFile(dataDir), tokenHash: () => tokens.fullHash }),
    isLoopback: isLoopback(values.listen.host),
    agentOf: (token) => callingAgent(parts.context.sessions, token, settings.values),
  });
  const app = daemonApp({
    world,
    context: parts.context,
    authenticator,
    apiDocs: values.api_docs,
    peerMemory: new PeerMemory(peerMemoryLimits(values.max_peer_memory_bytes)),
    maxConnections: values.max_connections,
    onUndocumentedResponse: parts.options.onUndocumentedResponse,
  });
  undo.add(() => app.close());
  const { url } = await listen(app, addressText(values.listen));
  authenticator.port = portOf(url);
  parts.base.address.url = url;
  undo.add(publishAddress(dataDir, url));
  const listeners = [{ listener: 'http', url }, ...(await listenForMetrics(parts))];
  const { backends, stopping } = parts.programs;
  const acpRows = fillAcpRows({ backends, clock, log });
  undo.add(() => {
    stopping.abort();
    return acpRows.close();
  });
  return running(parts.base, app, listeners);
}

/** The caller with an agent's own token; it ends with the agent. */
function callingAgent(
  sessions: DaemonContext['sessions'],
  token: string,
  { agents, auth }: DaemonSettings,
): Caller | undefined {
  const id = agentOf(token, (session) => sessions.secretOf(session));
  if (id === undefined) return undefined;
  const isLimited = auth !== 'none' && agents.token_rights !== 'full';
  return { name: `agent ${id}`, access: 'full', self: id, ...(isLimited && { agent: id }) };
}

async function listenForMetrics({ base, context }: ServeParts): Promise<RunningListener[]> {
  const { metrics_listen: address } = base.settings.values;
  if (!address) return [];
  const app = metricsApp(context.series, {
    world: base.world,
    codes: daemonCodes,
    host: address.host,
    peerMemory: new PeerMemory(peerMemoryLimits()),
  });
  const { url, close } = await listen(app, addressText(address), { flag: '--metrics-listen' });
  base.undo.add(close);
  return [{ listener: 'metrics', url }];
}

function running(
  { world, settings, dataDir, undo }: Base,
  app: BoundApp,
  listeners: readonly RunningListener[],
): RunningDaemon {
  const { clock, log } = world;
  const ended = new Promise<void>((_resolve, reject) => app.server.node.on('error', reject));
  // Handles the rejection for callers that do not use `ended`.
  ended.catch((error: unknown) => log.error({ err: error }, 'listener failed'));
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    const deadlineMs = settings.values.drain_timeout_ms;
    const isGentle = await drainHttp(app, { clock, deadlineMs });
    if (!isGentle) log.warn({}, 'drain timeout, requests aborted');
    await undo.run();
  };
  return { listeners, dataDir, ended, stop: () => (stopped ??= stop()) };
}

function secretFiles(tokens: Tokens, dataDir: string): (key: string) => string | undefined {
  return (key) => {
    if (key === 'token' && tokens.origin === 'file') return tokenFile(dataDir);
    if (key === 'read_only_token' && tokens.readOnlyOrigin === 'file') {
      return readOnlyTokenFile(dataDir);
    }
    if (key === 'notify.webhook_secret') return webhookSecretFile(dataDir);
    return undefined;
  };
}
