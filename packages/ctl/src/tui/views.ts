import type { List } from '@millrace/contract/lists';
import * as daemonLists from '@millrace/contract/lists/daemon';
import * as queueLists from '@millrace/contract/lists/queue';
import { asTyped } from '../base/command-name.js';
import { listText } from '../base/list-text.js';
import type { Sheet } from '../render/table.js';
import { printable, wrap } from '../render/text.js';
import { spendScreen } from '../usage/spend-screen.js';
import type { Note, Parts, PartName, Session, Snapshot } from './live-data.js';

export const tabs = ['Fleet', 'Questions', 'Queues', 'Backends', 'Spend', 'Inbox'] as const;
export type Tab = (typeof tabs)[number];

export const partOf: Readonly<Record<Tab, PartName>> = {
  Fleet: 'sessions',
  Questions: 'questions',
  Queues: 'queues',
  Backends: 'registry',
  Spend: 'spend',
  Inbox: 'notes',
};

/** One tab as text: a heading, a line per row, and details of each row. */
export interface View {
  readonly heading: string;
  /** A row without an id cannot be selected. */
  readonly rows: readonly { readonly id: string | null; readonly line: string }[];
  readonly empty: string;
  details(id: string): string[];
}

type Viewer = (data: Partial<Parts>, now: number, sheet: Sheet) => View | undefined;

const viewers: Readonly<Record<Tab, Viewer>> = {
  Fleet: fleetView,
  Questions: questionsView,
  Queues: queuesView,
  Backends: backendsView,
  Spend: spendView,
  Inbox: inboxView,
};

/** The view of a tab, or undefined while its data has not been read. */
export function viewOf(tab: Tab, { data }: Snapshot, now: number, sheet: Sheet): View | undefined {
  return viewers[tab](data, now, sheet);
}

/** The snapshot with the agents that have every word of a filter. */
export function filtered(snapshot: Snapshot, filter: string): Snapshot {
  const { sessions } = snapshot.data;
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (!sessions || wanted.length === 0) return snapshot;
  const matching = sessions.filter(({ name, status, backend, branch }) => {
    const text = [name, status, backend, branch].join(' ').toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  return { ...snapshot, data: { ...snapshot.data, sessions: matching } };
}

/** Number beside the name of a tab: what needs a person, or how many there are. */
export function countOf(tab: Tab, { data }: Snapshot): number | undefined {
  switch (tab) {
    case 'Fleet':
      return data.sessions?.length;
    case 'Questions':
      return data.questions?.length;
    case 'Queues':
      return data.queues?.length;
    case 'Inbox':
      return data.notes?.filter(({ read }) => !read).length;
    default:
      return undefined;
  }
}

/** Makes rows of a rendered table whose cells take one line each. */
function tableView(text: string, ids: readonly string[]): Pick<View, 'heading' | 'rows'> {
  const [heading = '', ...lines] = text.split('\n');
  return { heading, rows: ids.map((id, at) => ({ id, line: lines[at] ?? '' })) };
}

const none = { heading: '', rows: [], details: () => [] };

/** Views of a declared list, whose rows have ids. */
function listView<Row>(
  list: List<Row>,
  rows: readonly Row[],
  idOf: (row: Row) => string,
  place: { readonly now: number; readonly sheet: Sheet },
  details: (row: Row) => string[],
): View {
  const empty = asTyped(list.empty);
  if (rows.length === 0) return { ...none, empty };
  const { now, sheet } = place;
  return {
    ...tableView(listText(list, rows, now, sheet), rows.map(idOf)),
    empty,
    details(id) {
      const row = rows.find((each) => idOf(each) === id);
      return row ? details(row) : [];
    },
  };
}

const byId = ({ id }: { readonly id: string }) => id;

/** What fits beside the preview. */
const fleetList: List<Session> = {
  columns: daemonLists.sessions.columns.filter(({ title }) => ['Name', 'Status'].includes(title)),
  empty: daemonLists.sessions.empty,
};

function fleetView({ sessions }: Partial<Parts>, now: number, sheet: Sheet): View | undefined {
  if (!sessions) return undefined;
  const rows = daemonLists.newestAttempts(sessions);
  return listView(fleetList, rows, byId, { now, sheet }, (session) => {
    const place = `${session.workdir}${session.branch === null ? '' : ` (${session.branch})`}`;
    return [
      `${session.driver}, ${session.model ?? 'default model'}: ${place}`,
      daemonLists.reasonOf(session) ?? '',
      session.prompt,
    ].filter((line) => line !== '');
  });
}

function questionsView(
  { questions, sessions }: Partial<Parts>,
  now: number,
  sheet: Sheet,
): View | undefined {
  if (!questions || !sessions) return undefined;
  const names = new Map(sessions.map(({ id, name }) => [id, name]));
  const rows = questions.map((question) => ({
    ...question,
    agent: names.get(question.session_id) ?? question.session_id,
  }));
  return listView(daemonLists.questionTitles, rows, byId, { now, sheet }, (question) => {
    const options = question.options.map(({ label }, at) => `[${at + 1}] ${label}`).join('  ');
    return [question.title, ...(options === '' ? [] : [options]), ...question.body.split('\n')];
  });
}

function queuesView({ queues }: Partial<Parts>, now: number, sheet: Sheet): View | undefined {
  if (!queues) return undefined;
  const byName = ({ name }: { readonly name: string }) => name;
  return listView(queueLists.queues, queues, byName, { now, sheet }, ({ summary }) => {
    const target = summary.callback_url ?? 'workers that pull';
    const breaker = summary.breaker === undefined ? '' : `, circuit breaker ${summary.breaker}`;
    return [`Delivers to ${target}${breaker}. Config version ${summary.version}.`];
  });
}

function backendsView({ registry }: Partial<Parts>, now: number, sheet: Sheet): View | undefined {
  if (!registry) return undefined;
  const { backends, settings } = registry;
  return listView(daemonLists.backends, backends, byId, { now, sheet }, (row) => [
    row.binary_path === '' ? 'Not installed on this machine.' : row.binary_path,
    `Thinking mode: ${settings.internal_thinking_mode}`,
  ]);
}

function spendView({ spend }: Partial<Parts>, _now: number, sheet: Sheet): View | undefined {
  if (!spend) return undefined;
  const lines = spendScreen(spend, sheet).trimEnd().split('\n');
  return { ...none, rows: lines.map((line) => ({ id: null, line })), empty: '' };
}

function inboxView({ notes }: Partial<Parts>, now: number, sheet: Sheet): View | undefined {
  if (!notes) return undefined;
  const details = (note: Note) => [note.title, ...note.body.split('\n')];
  return listView(daemonLists.noteTitles, notes, byId, { now, sheet }, details);
}

/** Details wrapped to the width and cut to the height, safe for a terminal. */
export function fitted(lines: readonly string[], columns: number, height: number): string[] {
  const wrapped = lines.flatMap((line) => wrap(printable(line), columns));
  return wrapped.length <= height ? wrapped : [...wrapped.slice(0, height - 1), '…'];
}
