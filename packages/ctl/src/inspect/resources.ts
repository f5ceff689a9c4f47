import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { daemonApi, otherVersion, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Flags, Tools } from '../base/tools.js';
import { refresh } from '../base/watching.js';
import { parseSince } from '../base/since.js';
import { chartCells, historyScreen } from './history-screen.js';
import { resourcesScreen } from './resources-screen.js';

export type ResourcesFlags = DaemonFlags & Flags<never, 'watch history'> & { since: string };

export async function showResources(flags: ResourcesFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const { terminal } = tools;
  const { out, json } = terminal;
  const iteration = () => (flags.history ? history(api, flags.since, tools) : now(api, tools));
  if (!flags.watch) {
    const { document, screen } = await iteration();
    terminal.show(document, screen);
    return;
  }
  await refresh({}, { everyMs: 3_000, isEndless: true }, tools, async (frame) => {
    const { document, screen } = await iteration();
    if (json) out.write(`${JSON.stringify(document)}\n`);
    else frame.draw(fitting(screen, frame.rows));
  });
}

interface Seen {
  document: object;
  screen: string;
}

async function now(api: DaemonApi, { terminal: { out, json } }: Tools): Promise<Seen> {
  const [metrics, names] = await Promise.all([
    api.call('getMetrics'),
    json ? new Map<string, string>() : namesOf(api),
  ]);
  if (!isMetrics(metrics)) throw otherVersion(api, 'metrics');
  return { document: metrics, screen: json ? '' : resourcesScreen(metrics, names, out) };
}

async function history(api: DaemonApi, since: string, tools: Tools): Promise<Seen> {
  const { out, json } = tools.terminal;
  const { text } = parseSince(since, systemClock.now());
  const step = json ? {} : { step: stepFor(text, chartCells(out.columns)) };
  const [found, names] = await Promise.all([
    api.call('getMetricsHistory', { query: { since: text, ...step } }),
    json ? new Map<string, string>() : namesOf(api),
  ]);
  if (!isHistory(found)) throw otherVersion(api, 'metrics history');
  return {
    document: found,
    screen: json ? '' : historyScreen(found, names, systemClock.now(), out),
  };
}

const unitsS: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400, w: 604_800 };
const finestS = 15;

/** The step with which the whole span fits into a chart of this many cells. */
function stepFor(since: string, cells: number): string {
  const [, count, unit] = /^(\d+)([mhdw])$/.exec(since) ?? [];
  const seconds = count
    ? Number(count) * unitsS[unit!]!
    : (systemClock.now() - Date.parse(since)) / 1000;
  return String(Math.max(1, Math.ceil(seconds / cells / finestS)) * finestS);
}

/** Shows names instead of ids, if they can be read. */
async function namesOf(api: DaemonApi): Promise<Map<string, string>> {
  try {
    const { sessions } = await api.call('listSessions');
    return new Map(sessions?.map(({ id, name }) => [id, name]));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return new Map();
  }
}

/** A redrawn frame must fit on the screen. */
function fitting(screen: string, rows: number): string {
  const lines = screen.split('\n');
  if (lines.length - 1 <= rows) return screen;
  const hidden = lines.length - rows;
  return (
    `${lines.slice(0, rows - 1).join('\n')}\nand ${hidden} more lines: make the window ` +
    'taller\n'
  );
}

function isMetrics(value: unknown): value is DaemonSchema<'Metrics'> {
  const { system, daemon, agents } = (value ?? {}) as Partial<DaemonSchema<'Metrics'>>;
  return system !== undefined && daemon !== undefined && Array.isArray(agents);
}

function isHistory(value: unknown): value is DaemonSchema<'MetricsHistory'> {
  const { samples, step_s } = (value ?? {}) as Partial<DaemonSchema<'MetricsHistory'>>;
  return Array.isArray(samples) && samples.every(isMetrics) && typeof step_s === 'number';
}
