/** The lists of the daemon, and the commands on backends. */
import type { DaemonSchema } from '../daemon.js';
import {
  daemonCommand,
  rowsOf,
  toned,
  type Facts,
  type List,
  type Tone,
  type Value,
} from './list.js';

type Session = DaemonSchema<'Session'>;
type Pipeline = DaemonSchema<'Pipeline'>;
type Plan = DaemonSchema<'Plan'>;
type PlanTask = DaemonSchema<'PlanTask'>;
type Job = DaemonSchema<'Job'>;
type Note = DaemonSchema<'InboxNote'>;
type Standing = DaemonSchema<'BranchStanding'>;
type Backend = DaemonSchema<'BackendRow'>;

/** Minimum terminal width for the columns that are nice to have. */
const wide = 120;

export const sessionTones: Readonly<Record<Session['status'], Tone>> = {
  spawning: 'dim',
  working: 'strong',
  waiting_for_input: 'warn',
  idle: 'ok',
  done: 'ok',
  errored: 'bad',
  orphaned: 'bad',
  rate_limited: 'warn',
};

export function sessionStatus({ status }: Pick<Session, 'status'>): Value {
  return toned(status, sessionTones);
}

const contextTones = { ok: 'ok', warning: 'warn', critical: 'bad' } as const;

/** `118k`, or `-` if it is not known. */
export function contextSize({ context_tokens: amount, context_state: state }: Session): Value {
  if (amount === null) return { text: '-', tone: 'dim' };
  return { amount, tone: state === null ? undefined : contextTones[state] };
}

/** `118k tokens, warning` */
export function contextText(amount: number, state: Session['context_state']): Value {
  return [{ amount }, ' tokens', state === null ? '' : `, ${state}`];
}

export const sessions: List<Session> = {
  columns: [
    { title: 'ID', value: ({ id }) => ({ id }) },
    { title: 'Name', value: ({ name, task }) => [name, attemptText(task)] },
    { title: 'Status', value: sessionStatus },
    { title: 'Duration', value: ({ status_since: since }) => ({ since, inSeconds: true }) },
    { title: 'Backend', value: ({ backend }) => backend },
    { title: 'Context', value: contextSize },
    { title: 'Branch', value: ({ branch }) => branch ?? '-', minWidth: wide },
    {
      title: 'Reason',
      value: (session) => reasonOf(session) ?? '',
      minWidth: wide,
    },
  ],
  empty: 'No agents. Start one with `ctl agent spawn "PROMPT"`.',
};

/** Why a session has its status; of a failed one the error, which says more than its evidence. */
export function reasonOf({ status, status_reason: reason, last_error: error }: Session) {
  return status === 'errored' ? (error ?? reason) : (reason ?? error);
}

/** ` (attempt 2)` for a queue task that was retried. */
function attemptText(task: Session['task']): string {
  return task && task.attempt > 1 ? ` (attempt ${task.attempt})` : '';
}

/** One session for each queue task: its newest attempt. Sessions come newest first. */
export function newestAttempts<Each extends Pick<Session, 'task'>>(
  sessions: readonly Each[],
): Each[] {
  const seen = new Set<string>();
  return sessions.filter(({ task }) => {
    if (!task) return true;
    const isNew = !seen.has(task.id);
    seen.add(task.id);
    return isNew;
  });
}

/** Everything that the daemon knows about a session. */
export function sessionFacts(session: Session): Facts {
  const when = (time: string): Value => [time, ' (', { age: time }, ')'];
  const text = (value: number | null) => (value === null ? null : String(value));
  const { context_tokens: amount, context_state: state, limited_until: limited } = session;
  const { restart_count: restarts, auto_restart: isAutomatic, last_error: error } = session;
  return [
    ['agent', session.id],
    ['name', session.name],
    ['status', sessionStatus(session)],
    ['why', session.status_reason],
    ['since', when(session.status_since)],
    ['backend', session.backend],
    ['model', session.model],
    ['driver', session.driver],
    ['backend session', session.backend_session_id],
    ['prompt', session.prompt],
    ['directory', session.workdir],
    ['repository', session.repo],
    ['branch', session.branch],
    ['worktree', session.worktree],
    ['tags', session.tags.length === 0 ? null : session.tags.join(', ')],
    ['parent', session.parent_id],
    ['pipeline', session.pipeline_id],
    ['job', session.job_id],
    ['task', session.task ? `${session.task.id} of ${session.task.queue}` : null],
    ['attempt', session.task ? String(session.task.attempt) : null],
    ['serves', session.serve?.url ?? null],
    ['context', amount === null ? null : contextText(amount, state)],
    ['compact', session.force_compact === 'inherit' ? null : `forced: ${session.force_compact}`],
    ['process', text(session.pid)],
    ['exit code', text(session.exit_code)],
    [
      'restarts',
      restarts === 0 && !isAutomatic
        ? null
        : `${restarts}${isAutomatic ? ', restarted when it fails' : ''}`,
    ],
    ['limited', limited === null ? null : ['until ', when(limited)]],
    ['last error', error === null ? null : { text: error, tone: 'bad' }],
    ['spawned', when(session.created_at)],
  ];
}

const pipelineTones: Readonly<Record<Pipeline['status'] | Job['status'], Tone>> = {
  pending: 'dim',
  running: 'strong',
  paused: 'warn',
  done: 'ok',
  stalled: 'bad',
  canceled: 'dim',
  failed: 'bad',
  skipped: 'dim',
  needs_attention: 'warn',
};

export function pipelineStatus({ status }: Pipeline | Job): Value {
  return toned(status, pipelineTones);
}

export const pipelines: List<Pipeline> = {
  columns: [
    { title: 'ID', value: ({ id }) => ({ id }) },
    { title: 'Name', value: ({ name }) => name },
    { title: 'Status', value: pipelineStatus },
    { title: 'Jobs', value: ({ jobs }) => jobCounts(jobs) },
    { title: 'Created', value: ({ created_at: time }) => ({ time }) },
    { title: 'Repository', value: ({ repo }) => repo ?? '-', minWidth: wide },
  ],
  empty: 'No pipelines. Run one with `ctl pipeline run FILE`.',
};

const planTones: Readonly<Record<Plan['status'] | PlanTask['status'], Tone>> = {
  ...pipelineTones,
  ready: 'warn',
  waiting: 'warn',
};

/** With what it waits for, such as `waiting (pick)`. */
export function planStatus(item: Plan | PlanTask): Value {
  const what = 'waiting_for' in item && item.waiting_for ? ` (${item.waiting_for})` : '';
  return { text: `${item.status}${what}`, tone: planTones[item.status] };
}

export const plans: List<Plan> = {
  columns: [
    { title: 'ID', value: ({ id }) => ({ id }) },
    { title: 'Title', value: ({ title }) => title },
    { title: 'Status', value: planStatus },
    {
      title: 'Tasks',
      value: ({ tasks }) =>
        `${tasks.filter(({ status }) => status === 'done').length} of ${tasks.length} done`,
    },
    { title: 'Created', value: ({ created_at: time }) => (time === undefined ? '-' : { time }) },
    { title: 'Repository', value: ({ repo }) => repo ?? '-', minWidth: wide },
  ],
  empty: 'No plans. Run one with `ctl agent plan FILE`.',
};

/** `2 of 5 done, 1 failed` */
function jobCounts(jobs: readonly Job[]): string {
  const count = (status: Job['status']) => jobs.filter((job) => job.status === status).length;
  const counts = (['running', 'failed', 'needs_attention', 'skipped'] as const).flatMap(
    (status) => {
      const found = count(status);
      return found === 0 ? [] : [`${found} ${status.replace('_', ' ')}`];
    },
  );
  return [`${count('done')} of ${jobs.length} done`, ...counts].join(', ');
}

const severityTones = { info: 'dim', warning: 'warn', critical: 'bad' } as const;

const unreadMark = ({ read }: Note): Value => (read ? '' : { text: '*', tone: 'strong' });

export const notes: List<Note> = {
  columns: [
    { title: '', value: unreadMark },
    { title: 'ID', value: ({ id }) => ({ id }) },
    { title: 'Age', value: ({ ts: time }) => ({ time }) },
    { title: 'Severity', value: ({ severity }) => toned(severity, severityTones) },
    { title: 'Agent', value: ({ agent_id: id }) => id ?? '-', minWidth: wide },
    {
      title: 'Notification',
      value: ({ title, body }) => (body === '' ? title : `${title}: ${body}`),
      wraps: true,
    },
  ],
  empty: 'The inbox is empty.',
  footer: (all) => {
    const unread = all.filter(({ read }) => !read).length;
    return unread === 0
      ? ''
      : `* ${unread} unread. Mark one as read with \`ctl inbox read ID\`, or all with --all.`;
  },
};

/** One line for each note, without ids: the row is selected instead. */
export const noteTitles: List<Note> = {
  columns: [
    { title: '', value: unreadMark },
    { title: 'Age', value: ({ ts: age }) => ({ age }) },
    { title: 'Severity', value: ({ severity }) => toned(severity, severityTones) },
    { title: 'Notification', value: ({ title }) => title },
  ],
  empty: notes.empty,
};

type Question = DaemonSchema<'Question'> & { readonly agent: string };

export const questions: List<Question> = {
  columns: [
    { title: 'ID', value: ({ id }) => ({ id }) },
    { title: 'Agent', value: ({ agent }) => agent },
    { title: 'Age', value: ({ asked_at: time }) => ({ time }) },
    { title: 'Question', value: questionText, wraps: true },
    { title: 'Answer', value: answerText, wraps: true },
  ],
  empty: 'No agent waits for an answer.',
  footer: (all) =>
    all.some(({ status }) => status === 'open')
      ? 'Answer one with `ctl agent answer ID OPTION`.'
      : '',
};

/** One line for each question, without ids: the row is selected instead. */
export const questionTitles: List<Question> = {
  columns: [
    { title: 'Agent', value: ({ agent }) => agent },
    { title: 'Age', value: ({ asked_at: age }) => ({ age }) },
    { title: 'Kind', value: ({ kind }) => kind },
    { title: 'Question', value: ({ title }) => title },
  ],
  empty: 'No agent is waiting for an answer.',
};

const maxBody = 200;

function questionText({ title, body }: Question): string {
  if (body === '') return title;
  const line = body.replaceAll(/\s+/g, ' ').trim();
  return `${title} ${line.length > maxBody ? `${line.slice(0, maxBody - 1)}…` : line}`;
}

function answerText({ status, options, answer, answered_by: by }: Question): Value {
  if (status === 'closed') return { text: 'closed', tone: 'dim' };
  if (status === 'answered') {
    const label = options.find(({ id }) => id === answer)?.label ?? answer ?? 'answered';
    return { text: `${label} (by ${by})`, tone: 'dim' };
  }
  if (options.length === 0) return { text: '--text "..."', tone: 'warn' };
  return { text: options.map(({ id, label }) => `${id}: ${label}`).join('; '), tone: 'warn' };
}

/** More commits behind the base than this are highlighted. */
export const farBehind = 10;

const ciTones: Readonly<Record<string, Tone>> = {
  success: 'ok',
  failure: 'bad',
  pending: 'warn',
  none: 'dim',
};

export const branches: List<Standing> = {
  columns: [
    { title: 'Agent', value: ({ name }) => name },
    { title: 'Branch', value: ({ branch }) => branch ?? '-' },
    { title: 'Base', value: ({ base }) => base ?? '-' },
    { title: 'Ahead', value: ({ ahead }) => known(ahead) },
    {
      title: 'Behind',
      value: ({ behind }) =>
        behind !== null && behind > farBehind
          ? { text: String(behind), tone: 'warn' }
          : known(behind),
    },
    {
      title: 'Dirty',
      minWidth: 90,
      value: ({ uncommitted = null }) =>
        uncommitted ? { text: String(uncommitted), tone: 'warn' } : known(uncommitted),
    },
    {
      title: 'Merged',
      value: ({ merged }) => (merged === null ? '-' : merged ? { text: 'yes', tone: 'ok' } : 'no'),
    },
    {
      title: 'CI',
      value: ({ ci: { state } }) =>
        state === null ? '-' : { text: state, tone: ciTones[state] ?? 'dim' },
    },
    { title: 'Checked', value: ({ observed_at: time }) => ({ time, none: 'not yet' }) },
    { title: 'Checks', value: checkCounts, minWidth: wide },
    { title: 'ID', value: ({ agent_id: id }) => id, minWidth: wide },
  ],
  empty: 'No agent works on a branch. Check with `ctl config branches` that branches are read.',
};

function known(count: number | null): string {
  return count === null ? '-' : String(count);
}

/** `1 of 2 failed`, or how many there are. */
function checkCounts({ checks, ci }: Standing): string {
  if (checks.length === 0 && ci.state === null) return '-';
  const failed = checks.filter(({ state }) => state === 'failure').length;
  return failed > 0 ? `${failed} of ${checks.length} failed` : String(checks.length);
}

const no: Value = { text: 'no', tone: 'dim' };

export const backends: List<Backend> = {
  columns: [
    { title: 'ID', value: ({ id }) => id },
    {
      title: 'Installed',
      value: ({ installed }) => (installed ? { text: 'yes', tone: 'ok' } : no),
    },
    {
      title: 'Tier',
      value: ({ tier }) => (tier === 'unclassified' ? { text: tier, tone: 'dim' } : tier),
    },
    { title: 'Default', value: (row) => (row.default ? { text: 'yes', tone: 'strong' } : no) },
    { title: 'Enabled', value: ({ enabled }) => (enabled ? 'yes' : { text: 'no', tone: 'warn' }) },
    {
      title: 'Limited',
      value: ({ limited_until: until }) =>
        until === null ? no : { text: `until ${minuteOf(until)}`, tone: 'warn' },
    },
  ],
  empty: 'No backends.',
};

/** `2026-01-15 09:45Z` */
function minuteOf(timestamp: string): string {
  return `${timestamp.slice(0, 16).replace('T', ' ')}Z`;
}

const idArgument = ['<id>', 'backend id, such as claude'] as const;
const unknownBackend = { 1: 'no such backend, or failure' };
const tiers = ['free', 'subscription', 'pay_per_use', 'unclassified'] as const;
const modes = ['local_only', 'free_plus_local'] as const;

/** The commands that change a backend, or all of them. */
export const backendCommands = {
  tier: daemonCommand({
    operation: 'updateBackend',
    path: ['id'],
    body: ([, tier]) => ({ tier }),
    summary: 'Set how a backend is billed',
    description:
      'Set the tier of a backend. The daemon itself thinks only with free backends and ' +
      'the local model; `ctl usage` shows only subscription backends.',
    arguments: [idArgument, ['<tier>', 'how it is billed', tiers]],
    examples: [
      ['ctl backend tier claude subscription', 'a flat subscription'],
      ['ctl backend tier gemini free', 'costs nothing'],
    ],
    exitCodes: unknownBackend,
    shows: (row) => `The tier of ${row.id} is now ${row.tier}.`,
  }),
  default: daemonCommand({
    operation: 'setDefaultBackend',
    body: ([id]) => ({ id }),
    summary: 'Set the default backend',
    description:
      'Set the default backend. It must be installed and enabled; the local model cannot ' +
      'be the default.',
    arguments: [idArgument],
    examples: [['ctl backend default claude', 'use claude from now on']],
    exitCodes: { 1: 'no such backend, not eligible, or failure' },
    shows: (_, [id]) => `The default is now ${id}.`,
  }),
  enable: daemonCommand({
    operation: 'updateBackend',
    path: ['id'],
    body: () => ({ enabled: true }),
    summary: 'Enable a backend',
    description: 'Enable a backend.',
    arguments: [idArgument],
    examples: [['ctl backend enable codex', 'by its id']],
    exitCodes: unknownBackend,
    shows: enabledText,
  }),
  disable: daemonCommand({
    operation: 'updateBackend',
    path: ['id'],
    body: () => ({ enabled: false }),
    summary: 'Disable a backend',
    description:
      'Disable a backend. If it is the default it stays the default, unused, until it is ' +
      'enabled again.',
    arguments: [idArgument],
    examples: [['ctl backend disable codex', 'by its id']],
    exitCodes: unknownBackend,
    shows: enabledText,
  }),
  'thinking-mode': daemonCommand({
    operation: 'setThinkingMode',
    body: ([mode]) => ({ mode }),
    summary: 'Set which backends think for the daemon',
    description:
      'Set which backends the daemon itself thinks with: the local model alone, or free ' +
      'backends first and the local model last. Paid backends are never used.',
    arguments: [['<mode>', 'the mode', modes]],
    examples: [
      ['ctl backend thinking-mode local_only', 'nothing leaves this machine'],
      ['ctl backend thinking-mode free_plus_local', 'the default'],
    ],
    shows: (settings) => `The thinking mode is now ${settings.internal_thinking_mode}.`,
  }),
};

/** `codex is now enabled.` */
export function enabledText({ id, enabled }: Backend): string {
  return `${id} is now ${enabled ? 'enabled' : 'disabled'}.`;
}

export const pipelineList = daemonCommand({
  operation: 'listPipelines',
  alias: 'ls',
  summary: 'List pipelines',
  description: 'List pipelines, newest first, with their progress.',
  examples: [
    ['ctl pipeline list', 'as a table'],
    ['ctl pipeline ls --json', 'for scripts'],
  ],
  isView: true,
  shows: (answer) => rowsOf(pipelines, answer.pipelines),
  json: (_, answer) => ({ pipelines: answer.pipelines }),
});
