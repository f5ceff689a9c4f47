import { queueLists } from '@millrace/contract/lists';
import { humanAge } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { agentsScreen } from '../agent/agents-screen.js';
import { registryScreen } from '../backend/registry-screen.js';
import { listText } from '../render/list.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { printable, wrap } from '../render/text.js';
import { spendScreen } from '../usage/spend-screen.js';
import type { Note, Parts, PartName, Snapshot } from './live-data.js';

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

function fleetView({ sessions }: Partial<Parts>, now: number, sheet: Sheet): View | undefined {
  if (!sessions) return undefined;
  const empty = asTyped('No agents. Start one with `ctl agent spawn "PROMPT"`.');
  if (sessions.length === 0) return { ...none, empty };
  return {
    ...tableView(
      agentsScreen(sessions, now, sheet),
      sessions.map(({ id }) => id),
    ),
    empty,
    details(id) {
      const session = sessions.find((each) => each.id === id);
      if (!session) return [];
      const place = `${session.workdir}${session.branch === null ? '' : ` (${session.branch})`}`;
      return [
        `${session.driver}, ${session.model ?? 'default model'}: ${place}`,
        session.status_reason ?? session.last_error ?? '',
        session.prompt,
      ].filter((line) => line !== '');
    },
  };
}

function questionsView(
  { questions, sessions }: Partial<Parts>,
  now: number,
  sheet: Sheet,
): View | undefined {
  if (!questions || !sessions) return undefined;
  const names = new Map(sessions.map(({ id, name }) => [id, name]));
  const rows = questions.map((question): Cell[] => [
    names.get(question.session_id) ?? question.session_id,
    humanAge(Date.parse(question.asked_at), now),
    question.kind,
    question.title,
  ]);
  const columns = ['AGENT', 'AGE', 'KIND', 'QUESTION'].map((title) => ({ title }));
  return {
    ...tableView(
      renderTable(columns, rows, sheet),
      questions.map(({ id }) => id),
    ),
    empty: 'No agent is waiting for an answer.',
    details(id) {
      const question = questions.find((each) => each.id === id);
      if (!question) return [];
      const options = question.options.map(({ label }, at) => `[${at + 1}] ${label}`).join('  ');
      return [question.title, ...(options === '' ? [] : [options]), ...question.body.split('\n')];
    },
  };
}

function queuesView({ queues }: Partial<Parts>, now: number, sheet: Sheet): View | undefined {
  if (!queues) return undefined;
  const empty = asTyped(queueLists.queues.empty);
  if (queues.length === 0) return { ...none, empty };
  return {
    ...tableView(
      listText(queueLists.queues, queues, now, sheet),
      queues.map(({ name }) => name),
    ),
    empty,
    details(name) {
      const summary = queues.find((queue) => queue.name === name)?.summary;
      if (!summary) return [];
      const target = summary.callback_url ?? 'workers that pull';
      const breaker = summary.breaker === undefined ? '' : `, circuit breaker ${summary.breaker}`;
      return [`Delivers to ${target}${breaker}. Config version ${summary.version}.`];
    },
  };
}

function backendsView({ registry }: Partial<Parts>, _now: number, sheet: Sheet): View | undefined {
  if (!registry) return undefined;
  const { backends, settings } = registry;
  return {
    ...tableView(
      registryScreen(registry, sheet),
      backends.map(({ id }) => id),
    ),
    empty: 'No backends.',
    details(id) {
      const row = backends.find((backend) => backend.id === id);
      const path = row?.binary_path ?? '';
      return [
        path === '' ? 'Not installed on this machine.' : path,
        `Thinking mode: ${settings.internal_thinking_mode}`,
      ];
    },
  };
}

function spendView({ spend }: Partial<Parts>, _now: number, sheet: Sheet): View | undefined {
  if (!spend) return undefined;
  const lines = spendScreen(spend, sheet).trimEnd().split('\n');
  return { ...none, rows: lines.map((line) => ({ id: null, line })), empty: '' };
}

function inboxView({ notes }: Partial<Parts>, now: number, sheet: Sheet): View | undefined {
  if (!notes) return undefined;
  const rows = notes.map((note): Cell[] => [
    note.read ? '' : { text: '*', tone: 'strong' },
    humanAge(Date.parse(note.ts), now),
    { text: note.severity, tone: severityTones[note.severity] },
    note.title,
  ]);
  const columns = ['', 'AGE', 'SEVERITY', 'NOTIFICATION'].map((title) => ({ title }));
  return {
    ...tableView(
      renderTable(columns, rows, sheet),
      notes.map(({ id }) => id),
    ),
    empty: 'The inbox is empty.',
    details(id) {
      const note = notes.find((each) => each.id === id);
      return note ? [note.title, ...note.body.split('\n')] : [];
    },
  };
}

const severityTones = { info: 'dim', warning: 'warn', critical: 'bad' } as const satisfies Record<
  Note['severity'],
  string
>;

/** Details wrapped to the width and cut to the height, safe for a terminal. */
export function fitted(lines: readonly string[], columns: number, height: number): string[] {
  const wrapped = lines.flatMap((line) => wrap(printable(line), columns));
  return wrapped.length <= height ? wrapped : [...wrapped.slice(0, height - 1), '…'];
}
