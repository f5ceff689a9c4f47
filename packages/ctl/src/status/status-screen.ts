import { humanCount, humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { renderTable, wrapped, type Cell, type Sheet } from '../render/table.js';
import { printable, wrap } from '../render/text.js';
import type { ConnectorState } from './connectors.js';
import type { Tools } from '../base/tools.js';
import type { Overview, PartState } from './overview.js';
import { readOverview, type StatusFlags } from './read-overview.js';

export async function showStatus(flags: StatusFlags, tools: Tools): Promise<void> {
  const overview = await readOverview(flags, tools);
  const { format } = tools.terminal;
  const document = format === 'name' ? runningIn(overview) : overview;
  tools.terminal.show(document, (out) => statusScreen(overview, out));
  if (!overview.ok) tools.exitWith(1);
}

/** `-o name`: the servers that run, as `ctl logs` and `ctl restart` take them. */
function runningIn(overview: Overview): string[] {
  return (['db', 'queue', 'daemon'] as const).filter((name) => overview[name].up);
}

/** A row for each server, then the reasons for problems. */
export function statusScreen(overview: Overview, sheet: Sheet): string {
  const { db, queue, daemon } = overview;
  const parts: [title: string, state: PartState, details: string][] = [
    ['database', db, databaseText(db)],
    ['queue', queue, queueText(queue)],
    ['daemon', daemon, daemonText(daemon)],
  ];
  const titles = ['SERVER', 'STATE', 'ADDRESS', 'VERSION', wrapped('DETAILS')];
  const rows = parts.map(([title, state, details]): Cell[] => [
    title,
    state.up ? { text: 'up', tone: 'ok' } : { text: 'down', tone: 'bad' },
    state.address ?? '-',
    state.version ?? '-',
    details,
  ]);
  if (queue.grpc_address !== null) rows.splice(2, 0, ['', '', queue.grpc_address, '', '']);
  const width = Math.min(sheet.columns, 100);
  const reasons = parts
    .flatMap(([title, { reason }]) => (reason === null ? [] : [`${title}: ${reason}`]))
    .map((line) => line.replace(/ Start (?:one|it) with .*$/s, ''))
    .flatMap((line) => wrap(asTyped(printable(line)), width));
  const unguarded = parts
    .filter(([, { auth }]) => auth === 'none')
    .map(([title]) => `${title}: auth is none, so every local user has full access.`);
  return (
    renderTable(titles, rows, sheet) +
    connectorsTable(db.connectors ?? [], sheet) +
    [...unguarded, ...reasons, ...adviceOn(overview)].map((line) => `${line}\n`).join('')
  );
}

/** One line for all servers that are down, instead of one each. */
function adviceOn({ db, queue, daemon }: Overview): string[] {
  const titles = { db: 'database', queue: 'queue', daemon: 'daemon' };
  const names = (['db', 'queue', 'daemon'] as const).filter(
    (name) => !{ db, queue, daemon }[name].up,
  );
  if (names.length === 3) return [asTyped('Start everything with `ctl up`.')];
  return names.map((name) =>
    asTyped(
      `Start the ${titles[name]} with \`ctl ${name} serve\` or \`ctl up\`; its log: \`ctl logs ${name}\`.`,
    ),
  );
}

function connectorsTable(connectors: readonly ConnectorState[], sheet: Sheet): string {
  if (connectors.length === 0) return '';
  const rows = connectors.map(({ name, collection, queue, lag_ms: lagMs, error }): Cell[] => [
    name,
    collection,
    queue,
    lagMs === null ? '-' : humanDuration(lagMs),
    error === null ? '-' : { text: printable(error), tone: 'bad' },
  ]);
  const titles = ['CONNECTOR', 'COLLECTION', 'QUEUE', 'LAG', wrapped('ERROR')];
  return `\n${renderTable(titles, rows, sheet)}`;
}

function databaseText({ up, seq, collections, records, followers, role }: Overview['db']): string {
  if (!up || seq === null) return '';
  const facts = [
    `${counted(collections ?? 0, 'collection')} with ${counted(records ?? 0, 'record')}`,
    `commit ${seq}`,
    ...(role === 'leader' ? [] : [role ?? '']),
    counted(followers ?? 0, 'follower'),
  ];
  return facts.join(', ');
}

function queueText({ queues, totals }: Overview['queue']): string {
  if (queues === null || totals === null) return '';
  const { pending, in_flight: running, dlq_depth: dead, oldest_pending_age_ms: oldest } = totals;
  const facts = [
    counted(queues, 'queue'),
    `${humanCount(pending)} pending`,
    `${humanCount(running)} in flight`,
    `${humanCount(dead)} dead`,
    ...(oldest > 0 ? [`oldest pending ${humanDuration(oldest)}`] : []),
    ...(totals.paused > 0 ? [`${totals.paused} paused`] : []),
  ];
  return facts.join(', ');
}

function daemonText({ agents }: Overview['daemon']): string {
  if (agents === null) return '';
  const facts = Object.entries(agents).map(([status, count]) => `${count} ${status}`);
  const all = Object.values(agents).reduce<number>((sum, count) => sum + (count ?? 0), 0);
  return facts.length === 0 ? 'no agents' : `${counted(all, 'agent')}: ${facts.join(', ')}`;
}

function counted(count: number, what: string): string {
  return `${humanCount(count)} ${what}${count === 1 ? '' : 's'}`;
}
