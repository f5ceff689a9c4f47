import { homedir } from 'node:os';
import { addressText, isLoopback, type LoadedConfig } from '@millrace/kit/config';
import { drainHttp, listen } from '@millrace/kit/http';
import { webhookGuard } from '@millrace/kit/outbound';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { createOutbound } from '@millrace/wire/http1';
import { upstreamsOf } from '../proxy/upstream.js';
import { DashboardSite } from '../dashboard/site.js';
import { Events, Reports, watchLedger } from '../events/index.js';
import { Insights } from '../insights/insights.js';
import { agentVariables, knownClis, oneShotOf } from '../registry/programs.js';
import { Backends } from '../registry/backends.js';
import { detectBackends } from '../registry/detection.js';
import { ledgerFile } from '../savings/files.js';
import { readRatio } from '../savings/ratio.js';
import { SavingsRecorder } from '../savings/recorder.js';
import { publishRecording } from '../savings/running.js';
import { Savings } from '../savings/savings.js';
import { AcpSources } from '../sessions/cli/acp-sources.js';
import { HelpTexts, OfferedFlags } from '../registry/run-program.js';
import { OpencodeCopy, type OpencodeCopyOptions } from '../spend/opencode-copy.js';
import { Spend, type SpendOptions } from '../spend/spend.js';
import { importDeprecatedOnce } from '../storage/deprecated-import.js';
import { openStore } from '../storage/store.js';
import { thinkWithCli } from '../think/cli.js';
import { thinkWithLocal } from '../think/local.js';
import { Thinker } from '../think/thinker.js';
import { createUsage } from '../usage/index.js';
import { Workbench } from '../workbench/workbench.js';
import { Authenticator, portOf } from './access/authenticator.js';
import { Logins, Throttle } from './access/logins.js';
import { ensureToken, Tokens } from './access/tokens.js';
import { fillAcpRows } from './acp-rows.js';
import { publishAddress } from './address-file.js';
import { openAgents, type AgentsParts } from './agents.js';
import { daemonApp } from './app.js';
import {
  defaultDataDirectory,
  loginsFile,
  programHelpFile,
  readOnlyTokenFile,
  storeDirectory,
  tokenFile,
  webhookSecretFile,
  type DaemonSettings,
} from './config.js';
import { privateDirectory, privateFolder } from './data-directory.js';
import { LiveSettings } from './live-settings.js';

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

export interface RunningDaemon {
  readonly listeners: readonly { readonly listener: string; readonly url: string }[];
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
  const { values: settings } = loaded;
  const { clock, log } = world;
  const { environment } = options;
  const dataDir = privateDirectory(settings.data_dir ?? defaultDataDirectory(environment), log);
  ensureToken(loaded, dataDir, world.random);
  const tokens = new Tokens({
    areRequired: settings.auth !== 'none',
    token: { given: settings.token, file: tokenFile(dataDir) },
    readOnly: { given: settings.read_only_token, file: readOnlyTokenFile(dataDir) },
    log,
  });
  const secretFile = secretFiles(tokens, dataDir);
  const live = new LiveSettings({ loaded, log, dataDir, secretFile });
  const undo = new UndoList();
  try {
    const store = await openStore(storeDirectory(dataDir), world, settings.upgrade);
    undo.add(() => store.close());
    const { database } = store;
    const reports = new Reports({ database, clock, log });
    undo.add(() => reports.close());
    const outbound = createOutbound({ guard: webhookGuard, clock });
    undo.add(() => outbound.close());
    const { extra } = settings.backends;
    const variablesFor = agentVariables({ environment, extra, settings: settings.agents });
    const stopping = new AbortController();
    const texts = new HelpTexts({ file: programHelpFile(dataDir), log });
    const flags = new OfferedFlags({ clock, texts, signal: stopping.signal });
    const { adapters } = settings.agents;
    const searchPath = environment['PATH'];
    const acp = new AcpSources({ flags, searchPath, extra, adapters, variablesFor });
    undo.add(() => stopping.abort());
    const backends = backendsOf(settings, environment, { clock, outbound, acp, ...store });
    await backends.rescan();
    await importDeprecatedOnce(store.registry, deprecatedIn(settings), log);
    const cwd = privateFolder(dataDir, 'think');
    const { savings: isOn, savings_samples: keepsSamples } = settings;
    undo.add(publishRecording(dataDir, { savings: isOn, savingsSamples: keepsSamples }));
    const savings = new Savings({ dataDir, clock, log, isOn, keepsSamples });
    const recorder = isOn ? new SavingsRecorder({ dataDir, ...world, keepsSamples }) : undefined;
    const thinkerParts = { backends, clock, log, outbound, variablesFor, cwd, recorder };
    const thinker = thinkerOf(() => live.values.backends, thinkerParts);
    undo.add(() => thinker.close());
    const usage = createUsage({
      clock,
      log,
      home: environment['HOME'] || homedir(),
      environment,
      codexEnvironment: variablesFor('codex'),
      providers: settings.providers,
      rows: async () => (await backends.read()).backends,
      outbound,
      onChange: () => reports.changed('usage'),
    });
    undo.add(() => usage.close());
    let counted: Spend | undefined;
    const openSpend = () =>
      (counted ??= spendOf({
        clock,
        log,
        environment,
        dataDir,
        database,
        copy: opencodeCopy({ dataDir, environment, clock, log, backends, variablesFor }),
        onChange: () => isOn && reports.changed('spend'),
      }));
    // Budget caps need the spend even when reports are off.
    const isRead = isOn || hasCap(settings) || settings.insights;
    const transcripts = isRead ? openSpend() : undefined;
    undo.add(() => counted?.close());
    const onChange = () => reports.changed('savings');
    const ledger = isOn ? watchLedger({ file: ledgerFile(dataDir), clock, onChange }) : undefined;
    undo.add(() => ledger?.close());
    const agents = await openAgents({
      settings: live,
      world,
      store,
      backends,
      readSpend: () => openSpend().read(),
      recorder,
      outbound,
      environment,
      variablesFor,
      dataDir,
      acp,
      flags,
      acpHost: options.acpHost,
      permissionTool: options.permissionTool,
    });
    undo.add(() => agents.close());
    const authenticator = new Authenticator({
      tokens,
      throttle: new Throttle(clock),
      logins: new Logins({ ...world, file: loginsFile(dataDir), tokenHash: () => tokens.fullHash }),
      isLoopback: isLoopback(settings.listen.host),
    });
    const app = daemonApp({
      world,
      context: {
        backends,
        sessions: agents.sessions,
        notify: agents.notify,
        questions: agents.questions,
        metrics: agents.metrics,
        branches: agents.branches,
        workbench: new Workbench({ clock, environment, runsHooks: settings.worktrees.hooks }),
        pipelines: agents.pipelines,
        queueTasks: agents.queueTasks,
        events: new Events({ database, clock }),
        forceCompact: () => live.values.tokens.force_compact,
        thinker,
        usage,
        savings,
        spend: isOn ? transcripts : undefined,
        insights:
          settings.insights && transcripts
            ? new Insights({ clock, spend: transcripts })
            : undefined,
        settings: live,
        dashboard: new DashboardSite(),
        upstreams: upstreamsOf(settings, clock),
      },
      authenticator,
      apiDocs: settings.api_docs,
      peerMemory: new PeerMemory(peerMemoryLimits(settings.max_peer_memory_bytes)),
      maxConnections: settings.max_connections,
      onUndocumentedResponse: options.onUndocumentedResponse,
    });
    undo.add(() => app.close());
    const { url } = await listen(app, addressText(settings.listen));
    authenticator.port = portOf(url);
    undo.add(publishAddress(dataDir, url));
    const acpRows = fillAcpRows({ backends, clock, log });
    undo.add(() => {
      stopping.abort();
      return acpRows.close();
    });
    const ended = new Promise<void>((_resolve, reject) => app.server.node.on('error', reject));
    // Handles the rejection for callers that do not use `ended`.
    ended.catch((error: unknown) => log.error({ err: error }, 'listener failed'));
    let stopped: Promise<void> | undefined;
    const stop = async () => {
      const isGentle = await drainHttp(app, { clock, deadlineMs: settings.drain_timeout_ms });
      if (!isGentle) log.warn({}, 'drain timeout, requests aborted');
      await undo.run();
    };
    return {
      listeners: [{ listener: 'http', url }],
      dataDir,
      ended,
      stop: () => (stopped ??= stop()),
    };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

function hasCap({ tokens }: DaemonSettings): boolean {
  const { budget_gate, budget_daily_usd, budget_weekly_usd } = tokens;
  return budget_gate && (budget_daily_usd > 0 || budget_weekly_usd > 0);
}

type StoreParts = Pick<ConstructorParameters<typeof Backends>[0], 'registry' | 'clock'>;
type Outbound = ReturnType<typeof createOutbound>;

function backendsOf(
  settings: DaemonSettings,
  environment: DaemonOptions['environment'],
  { registry, clock, acp, outbound }: StoreParts & { acp: AcpSources; outbound: Outbound },
): Backends {
  const clis = knownClis(settings.backends.extra);
  return new Backends({
    registry,
    clock,
    findAcp: (backend) => acp.find(backend),
    knownIds: clis.map(({ id }) => id),
    detect: () =>
      detectBackends({
        clis,
        searchPath: () => environment['PATH'],
        outbound,
        localUrl: settings.backends.local_url,
        findAdapter: (id) => acp.adapterOf(id),
      }),
  });
}

function thinkerOf(
  settings: () => DaemonSettings['backends'],
  parts: Pick<World, 'clock' | 'log'> &
    Pick<AgentsParts, 'backends' | 'outbound' | 'recorder' | 'variablesFor'> & { cwd: string },
): Thinker {
  const { backends, clock, log, outbound, variablesFor, cwd, recorder } = parts;
  const { local_url: url, local_model: model, extra } = settings();
  const timeoutMs = () => settings().think_timeout;
  return new Thinker({
    backends,
    clock,
    log,
    limitRetryMs: () => settings().limit_retry,
    thinkWithCli: ({ id, binary_path: file }, prompt, signal) =>
      thinkWithCli(
        { clock, log, environment: variablesFor(id), cwd, timeoutMs: timeoutMs() },
        { id, file, ...oneShotOf(id, extra) },
        prompt,
        signal,
      ),
    thinkWithLocal: (prompt, signal) =>
      thinkWithLocal({ outbound, url, model, timeoutMs: timeoutMs() }, prompt, signal),
    onLocalAnswer: async (...answer) => void (await recorder?.recordOffload(...answer)),
  });
}

function opencodeCopy({
  backends,
  variablesFor,
  environment,
  ...parts
}: Pick<OpencodeCopyOptions, 'dataDir' | 'clock' | 'log' | 'environment'> & {
  backends: Backends;
  variablesFor: (backend: string) => Record<string, string>;
}) {
  const copy = new OpencodeCopy({
    ...parts,
    home: environment['HOME'] || homedir(),
    environment: variablesFor('opencode'),
    program: async () => {
      const row = (await backends.read()).backends.find(({ id }) => id === 'opencode');
      return row?.installed ? row.binary_path : undefined;
    },
  });
  return (signal: AbortSignal) => copy.refresh(signal);
}

function spendOf(parts: Omit<SpendOptions, 'basis'> & { dataDir: string }): Spend {
  const { dataDir } = parts;
  const spend = new Spend({ ...parts, basis: async () => (await readRatio(dataDir)).basis });
  spend.start();
  return spend;
}

function deprecatedIn({ autopilot: { brain } }: DaemonSettings) {
  const { free = [], subscription = [], pay_per_use = [] } = brain.backends;
  return { free, subscription, pay_per_use, allow_pay_per_use: brain.allow_pay_per_use };
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
