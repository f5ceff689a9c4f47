import { homedir } from 'node:os';
import type { Outbound } from '@millrace/kit/outbound';
import type { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { watchLedger, type Reports } from '../events/reports.js';
import { Backends } from '../registry/backends.js';
import { detectBackends } from '../registry/detection.js';
import { knownClis, oneShotOf } from '../registry/programs.js';
import { HelpTexts, OfferedFlags } from '../registry/run-program.js';
import { readRatio } from '../savings/calibrate.js';
import { ledgerFile, publishRecording } from '../savings/files.js';
import { SavingsRecorder } from '../savings/recorder.js';
import { Savings } from '../savings/savings.js';
import { AcpSources } from '../sessions/cli/acp-sources.js';
import { OpencodeCopy } from '../spend/opencode-copy.js';
import { Spend } from '../spend/spend.js';
import { importDeprecatedOnce, type Store } from '../storage/store.js';
import { thinkWithCli } from '../think/cli.js';
import { thinkWithLocal } from '../think/local.js';
import { Thinker } from '../think/thinker.js';
import { Usage } from '../usage/usage.js';
import { programHelpFile, type DaemonSettings } from './config.js';
import { privateFolder } from './data-directory.js';
import type { LiveSettings } from './live-settings.js';

/** What every service is made from. */
export interface Base {
  settings: LiveSettings;
  world: World;
  environment: Readonly<Record<string, string | undefined>>;
  dataDir: string;
  store: Store;
  reports: Reports;
  /** Refuses link-local addresses. */
  outbound: Outbound;
  /** Environment variables of a backend's program. */
  variablesFor: (backend: string) => Record<string, string>;
  /** Where this daemon is reached; undefined before it listens. */
  address: { url: string | undefined };
  /** Closes what was opened, in reverse order. */
  undo: UndoList;
}

/** The command lines of this machine. */
export interface Programs {
  backends: Backends;
  acp: AcpSources;
  flags: OfferedFlags;
  /** Aborts programs that run for their help. */
  stopping: AbortController;
}

/** Finds the installed command lines, and what they support. */
export async function openPrograms(base: Base): Promise<Programs> {
  const { world, environment, dataDir, store, outbound, variablesFor, undo } = base;
  const { clock, log } = world;
  const { values: settings } = base.settings;
  const { extra, local_url: localUrl } = settings.backends;
  const stopping = new AbortController();
  const texts = new HelpTexts({ file: programHelpFile(dataDir), log });
  const flags = new OfferedFlags({ clock, texts, signal: stopping.signal });
  const searchPath = environment['PATH'];
  const { adapters } = settings.agents;
  const acp = new AcpSources({ flags, searchPath, extra, adapters, variablesFor });
  undo.add(() => stopping.abort());
  const clis = knownClis(extra);
  const findAdapter = (id: string) => acp.adapterOf(id);
  const backends = new Backends({
    registry: store.registry,
    clock,
    findAcp: (backend) => acp.find(backend),
    knownIds: clis.map(({ id }) => id),
    detect: () =>
      detectBackends({ clis, searchPath: () => searchPath, outbound, localUrl, findAdapter }),
  });
  await backends.rescan();
  await importDeprecatedOnce(store.registry, deprecatedIn(settings), log);
  return { backends, acp, flags, stopping };
}

function deprecatedIn({ autopilot: { brain } }: DaemonSettings) {
  const { free = [], subscription = [], pay_per_use = [] } = brain.backends;
  return { free, subscription, pay_per_use, allow_pay_per_use: brain.allow_pay_per_use };
}

/** Thinking, and the accounts of what agents use, cost and save. */
export interface Accounts {
  thinker: Thinker;
  usage: Usage;
  savings: Savings;
  /** Undefined when the setting `savings` is off. */
  recorder: SavingsRecorder | undefined;
  /** Undefined when nothing needs the spend. */
  spend: Spend | undefined;
  /** Starts to count when it is first called. */
  readSpend: () => ReturnType<Spend['read']>;
  /** Copies new rows of opencode's database; nothing while the spend is not counted. */
  refreshCopy: () => Promise<void>;
  /** The last answer of a conversation in that database. */
  opencodeAnswer: (id: string) => Promise<string | undefined>;
}

export function openAccounts(base: Base, backends: Backends): Accounts {
  const { world, environment, dataDir, reports, outbound, variablesFor, undo } = base;
  const { clock, log } = world;
  const { values: settings } = base.settings;
  const { savings: isOn, savings_samples: keepsSamples } = settings;
  undo.add(publishRecording(dataDir, { savings: isOn, savingsSamples: keepsSamples }));
  const savings = new Savings({ dataDir, clock, log, isOn, keepsSamples });
  const recorder = isOn ? new SavingsRecorder({ dataDir, ...world, keepsSamples }) : undefined;
  const thinker = thinkerOf(base, backends, recorder);
  undo.add(() => thinker.close());
  const usage = new Usage({
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
  const copy = opencodeOf(base, backends);
  const openSpend = () => (counted ??= spendOf(base, copy));
  // Budget caps need the spend even when reports are off.
  const spend = isOn || hasCap(settings) || settings.insights ? openSpend() : undefined;
  undo.add(() => counted?.close());
  const onChange = () => reports.changed('savings');
  const ledger = isOn ? watchLedger({ file: ledgerFile(dataDir), clock, onChange }) : undefined;
  undo.add(() => ledger?.close());
  const readSpend = () => openSpend().read();
  const refreshCopy = async () => counted?.copyNow();
  const opencodeAnswer = (id: string) => copy.lastAnswer(id);
  return { thinker, usage, savings, recorder, spend, readSpend, refreshCopy, opencodeAnswer };
}

function hasCap({ tokens }: DaemonSettings): boolean {
  const { budget_gate, budget_daily_usd, budget_weekly_usd } = tokens;
  return budget_gate && (budget_daily_usd > 0 || budget_weekly_usd > 0);
}

function thinkerOf(
  { settings, world, outbound, variablesFor, dataDir }: Base,
  backends: Backends,
  recorder: SavingsRecorder | undefined,
): Thinker {
  const { clock, log } = world;
  const cwd = privateFolder(dataDir, 'think');
  const { local_url: url, local_model: model, extra } = settings.values.backends;
  const timeoutMs = () => settings.values.backends.think_timeout;
  return new Thinker({
    backends,
    clock,
    log,
    limitRetryMs: () => settings.values.backends.limit_retry,
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

function opencodeOf(base: Base, backends: Backends): OpencodeCopy {
  const { world, environment, dataDir, variablesFor } = base;
  return new OpencodeCopy({
    ...world,
    dataDir,
    home: environment['HOME'] || homedir(),
    environment: variablesFor('opencode'),
    program: async () => {
      const row = (await backends.read()).backends.find(({ id }) => id === 'opencode');
      return row?.installed ? row.binary_path : undefined;
    },
  });
}

function spendOf(base: Base, copy: OpencodeCopy): Spend {
  const { settings, world, environment, dataDir, store, reports } = base;
  const { clock, log } = world;
  const spend = new Spend({
    clock,
    log,
    environment,
    dataDir,
    database: store.database,
    extra: settings.values.backends.extra,
    copy: (signal, isUrgent) => copy.refresh(signal, isUrgent),
    basis: async () => (await readRatio(dataDir)).basis,
    onChange: () => settings.values.savings && reports.changed('spend'),
  });
  spend.start();
  return spend;
}
