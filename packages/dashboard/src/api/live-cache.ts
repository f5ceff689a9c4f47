import type { DaemonSchema } from '@millrace/contract/daemon';
import type { QueryClient, QueryKey } from '@tanstack/react-query';

type Event = DaemonSchema<'Event'>;

/**
 * Applies a batch of events to the query cache: data in an event replaces the cached data, and
 * queries that an event only names are invalidated.
 */
export function applyEvents(client: QueryClient, events: readonly Event[]): void {
  if (events.some(({ type }) => type === 'stream.reset')) {
    void client.invalidateQueries();
    return;
  }
  const stale = new Set<string>();
  const lists = new Map<string, ListChange>();
  for (const event of events) applyOne(client, event, lists, stale);
  for (const [key, change] of lists) {
    client.setQueryData([key] as QueryKey, (list: Row[] | undefined) => mergeChanges(list, change));
  }
  for (const key of stale) void client.invalidateQueries({ queryKey: [key] });
  if (lists.has('sessions') || lists.has('branches')) void refreshBoard(client);
}

let boardRefreshes = Promise.resolve();
let isBoardWaiting = false;

/** Reads the board once more after the current read, so that frequent events never starve it. */
async function refreshBoard(client: QueryClient): Promise<void> {
  if (isBoardWaiting) return;
  isBoardWaiting = true;
  await boardRefreshes;
  isBoardWaiting = false;
  boardRefreshes = client.invalidateQueries({ queryKey: ['board'] });
}

type Row = Readonly<Record<string, unknown>>;

interface ListChange {
  idField: string;
  changed: Map<string, Row>;
  removed: Set<string>;
}

const listOf = {
  session: { key: 'sessions', idField: 'id' },
  pipeline: { key: 'pipelines', idField: 'id' },
  plan: { key: 'plans', idField: 'id' },
  note: { key: 'inbox', idField: 'id' },
  branch: { key: 'branches', idField: 'agent_id' },
  question: { key: 'questions', idField: 'id' },
} as const;

function applyOne(
  client: QueryClient,
  event: Event,
  lists: Map<string, ListChange>,
  stale: Set<string>,
): void {
  const [thing = '', verb] = event.type.split('.');
  if (Object.hasOwn(listOf, thing) && event.key !== null) {
    const { key, idField } = listOf[thing as keyof typeof listOf];
    let change = lists.get(key);
    if (!change) lists.set(key, (change = { idField, changed: new Map(), removed: new Set() }));
    if (verb === 'removed') {
      change.changed.delete(event.key);
      change.removed.add(event.key);
    } else {
      change.removed.delete(event.key);
      change.changed.set(event.key, event.data as unknown as Row);
    }
    if (event.type === 'session.changed') client.setQueryData(['session', event.key], event.data);
    if (event.type === 'session.removed') client.setQueryData(['session', event.key], null);
    return;
  }
  if (event.type === 'metrics.sampled') client.setQueryData(['metrics'], event.data);
  if (thing === 'backend' || thing === 'settings') stale.add('registry');
  if (thing === 'backend') stale.add('usage');
  if (thing === 'usage' || thing === 'savings' || thing === 'spend') stale.add(thing);
}

/** Applies a change to a list; new rows come first, as the server sorts them. */
export function mergeChanges(list: Row[] | undefined, change: ListChange): Row[] | undefined {
  // A list that was never read stays unread: a partial list would look complete.
  if (!list) return undefined;
  const { idField, changed, removed } = change;
  const added = new Map(changed);
  const rows: Row[] = [];
  for (const row of list) {
    const id = String(row[idField]);
    const now = added.get(id);
    if (now) added.delete(id);
    if (!removed.has(id)) rows.push(now ?? row);
  }
  return [...[...added.values()].toReversed(), ...rows];
}
