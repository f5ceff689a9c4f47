import { systemClock } from '@millrace/kit/clock';
import { humanBytes, humanDuration } from '@millrace/kit/units';
import type { ClusterStatus, CompactionStatus, DatabaseStatus } from '@millrace/db/client';
import { wholeNumber } from '../base/arguments.js';
import type { ConnectedTools } from './connection.js';
import type { Outlet } from '../base/terminal.js';
import { renderTable, timeText, renderFacts, type Cell } from '../render/table.js';
import { collectionsTable } from './catalog.js';
import { counted } from '@millrace/contract/lists';
import { whileShown } from './progress.js';
import { secondsText, statusJson } from './shapes.js';

export async function compactNow(
  { trimBefore, dryRun = false }: { trimBefore?: string; dryRun?: boolean },
  { connected, terminal, lifecycle }: ConnectedTools,
): Promise<void> {
  const trimBeforeSeq = wholeNumber(trimBefore, '--trim-before');
  const options = { trimBeforeSeq, dryRun };
  const database = await connected();
  const { bytesBefore, bytesAfter, oldestSeq, elapsedMs } = await whileShown(
    { terminal, lifecycle },
    {
      verb: 'Compacting',
      work: () => database.compact(options),
      read: async () =>
        compactionShare((await database.status({ includeCollections: false })).compaction),
    },
  );
  const verb = options.dryRun ? 'Would compact' : 'Compacted';
  terminal.show(
    {
      bytes_before: bytesBefore,
      bytes_after: bytesAfter,
      oldest_seq: oldestSeq,
      elapsed: secondsText(elapsedMs),
    },
    `${verb} ${humanBytes(bytesBefore)} to ` +
      `${options.dryRun ? 'about ' : ''}${humanBytes(bytesAfter)} in ` +
      `${humanDuration(elapsedMs)}; the log starts at commit ${oldestSeq}.\n`,
  );
}

function compactionShare(compaction: CompactionStatus | undefined) {
  if (!compaction) return undefined;
  const { rows: done, totalRows: of, elapsedMs } = compaction;
  return { done, of, elapsedMs };
}

export async function promoteNow(
  { force = false, maxLag }: { force?: boolean; maxLag?: string },
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const options = { force, maxLag: wholeNumber(maxLag, '--max-lag') };
  const database = await connected();
  const { role, epoch, seq, lag } = await database.promote(options);
  const lost = lag > 0 ? `, without ${counted(lag, 'commit')} of the old leader` : '';
  terminal.show(
    { role, epoch, seq, lag },
    `${database.url} is ${role} of epoch ${epoch} at commit ${seq}${lost}.\n`,
  );
}

export async function showStatus(_flags: object, { connected, terminal }: ConnectedTools) {
  const database = await connected();
  const status = await database.status({ includeCollections: true });
  terminal.show(statusJson(status), (out) => statusText(status, database.url, out));
}

export function statusText(status: DatabaseStatus, url: string, out: Outlet): string {
  const tables = [factsOf(status, url, out), collectionsTable(status.collections, out)];
  if (status.cluster) tables.push(membersTable(status.cluster, out));
  if (status.followers.length > 0) tables.push(followersTable(status, out));
  if (status.savedTails.length > 0) tables.push(tailsTable(status, out));
  return tables.join('\n');
}

function factsOf(status: DatabaseStatus, url: string, out: Outlet): string {
  const { role, state, seq, durableSeq, oldestSeq, durability } = status;
  const isWell = state === 'leading' || state === 'streaming';
  const rows: Cell[][] = [
    ['server', `${url}, version ${status.version}`],
    ['role', { text: roleText(status), tone: isWell ? 'ok' : 'warn' }],
    ['epoch', String(status.epoch)],
    ['commit', `${seq}${durableSeq < seq ? `, ${durableSeq} on disk` : ''}; log from ${oldestSeq}`],
    [
      'durability',
      durability === 'full' ? 'full' : { text: `${durability}: see the guide`, tone: 'warn' },
    ],
  ];
  if (status.auth === 'none') {
    rows.push(['auth', { text: 'off: every local user has full access', tone: 'warn' }]);
  }
  if (role !== 'leader') rows.push(['leader', status.leaderAddress || 'not known']);
  if (role === 'follower') rows.push(['lag', lagCell(status)]);
  if (status.minAcks > 0 && role === 'leader') rows.push(['min acks', minAcksCell(status)]);
  if (status.cluster) rows.push(...clusterRows(status, status.cluster));
  if (status.compaction) rows.push(['compaction', compactionText(status.compaction)]);
  rows.push(['node', status.nodeId], ['lineage', status.lineageId]);
  return renderFacts(rows, out);
}

function compactionText({ rows, totalRows, elapsedMs }: CompactionStatus): string {
  const percent = totalRows > 0 ? Math.min(100, Math.floor((100 * rows) / totalRows)) : 0;
  return `${percent}% after ${humanDuration(elapsedMs)}`;
}

/** States in which a node of a cluster accepts no writes, and what ends them. */
const waiting: Readonly<Record<string, string>> = {
  suspended: 'leader (suspended): cannot renew its lease in etcd; serves reads only',
  electing: 'none (electing): waits for the next leader; serves reads only',
};

function roleText({ role, state }: DatabaseStatus): string {
  const text = waiting[state];
  if (text !== undefined) return text;
  if (role === 'fenced')
    return 'fenced: accepts no writes; start it with --follow to copy the leader';
  return `${role} (${state})`;
}

function clusterRows({ role, minAcks }: DatabaseStatus, cluster: ClusterStatus): Cell[][] {
  const { name, problem, leaseRemainingMs, lossWindow } = cluster;
  const shown = problem === '' ? name : `${name}: ${problem}`;
  const rows: Cell[][] = [
    ['cluster', problem === '' ? shown : { text: shown, tone: 'warn' }],
    ['lease', `${humanDuration(leaseRemainingMs)} left`],
  ];
  if (role === 'leader' && minAcks === 0) {
    const text = `${counted(lossWindow, 'commit')} now: min_acks is 0, so writes that no follower has yet are lost with the leader`;
    rows.push(['loss window', { text, tone: 'warn' }]);
  }
  return rows;
}

function membersTable({ members, leaderId }: ClusterStatus, out: Outlet): string {
  const rows = members.map(({ nodeId, address, running }) => [
    nodeId,
    address,
    running
      ? { text: nodeId === leaderId ? 'leader' : 'running', tone: 'ok' as const }
      : { text: 'not running', tone: 'bad' as const },
  ]);
  return renderTable(['MEMBER', 'ADDRESS', 'STATE'], rows, out);
}

function lagCell({ lag, lagMs, state }: DatabaseStatus): Cell {
  const late = lagMs === undefined ? 'since an unknown time' : humanDuration(lagMs);
  const text = `${counted(lag, 'commit')}, ${late}`;
  // The position of a silent leader is unknown.
  return state === 'streaming' ? text : { text: `${text}, as last reported`, tone: 'warn' };
}

function minAcksCell({ minAcks, followers }: DatabaseStatus): Cell {
  const connected = followers.filter(({ connectedAt }) => connectedAt).length;
  if (connected >= minAcks) return String(minAcks);
  return { text: `${minAcks}, with ${counted(connected, 'follower')}: writes fail`, tone: 'bad' };
}

function followersTable({ followers }: DatabaseStatus, out: Outlet): string {
  const now = systemClock.now();
  const rows = followers.map(({ followerId, address, ackedSeq, lag, connectedAt, lastAckAt }) => [
    followerId,
    address,
    ackedSeq,
    lag,
    {
      text: lastAckAt ? timeText(lastAckAt.getTime(), now, out) : 'never',
      tone: connectedAt ? ('ok' as const) : ('bad' as const),
    },
  ]);
  return renderTable(['FOLLOWER', 'ADDRESS', 'COMMIT', 'LAG', 'LAST SEEN'], rows, out);
}

function tailsTable({ savedTails }: DatabaseStatus, out: Outlet): string {
  const rows = savedTails.map(({ file, firstSeq, lastSeq, epoch, savedAt }) => [
    file,
    `${firstSeq} to ${lastSeq}`,
    epoch,
    savedAt.toISOString(),
  ]);
  return renderTable(['SAVED TAIL', 'COMMITS', 'EPOCH', 'SAVED'], rows, out);
}
