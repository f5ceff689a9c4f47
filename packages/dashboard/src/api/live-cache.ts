import type { DaemonSchema } from '@millrace/contract/daemon';
import type { QueryClient, QueryKey } from '@tanstack/react-query';

type Event = DaemonSchema<'Event'>;

/**
 * Brings what the pages show up to date with a batch of events: what an event carries is put in
 * place, what it only names is read again if a page shows it.
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
    client.setQueryData([key] as QueryKey, (list: Row[] | undefined) => merged(list, change));
  }
  for (const key of stale) void client.invalidateQueries({ queryKey: [key] });
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
  note: { key: 'inbox', idField: 'id' },
  branch: { key: 'branches', idField: 'agent_id' },
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

/** The list with the change; what is new comes first, as the server lists it. */
export function merged(list: Row[] | undefined, change: ListChange): Row[] | undefined {
  // A list that no page has read stays unread: half of it would look like all of it.
  if (!list) return undefined;
  const { idField, changed, removed } = change;
  const rest = new Map(changed);
  const kept: Row[] = [];
  for (const row of list) {
    const id = String(row[idField]);
    const now = rest.get(id);
    if (now) rest.delete(id);
    if (!removed.has(id)) kept.push(now ?? row);
  }
  return [...[...rest.values()].toReversed(), ...kept];
}
