import type { DaemonSchema } from '@millrace/contract/daemon';
import { count, tokens, words } from '../../parts/format.js';
import type { GuardSettings } from '../../sessions/settings.js';

type Session = DaemonSchema<'Session'>;

export interface Explanation {
  question: string;
  answer: string;
}

/** Explains the status of an agent and what happens next, from its record. */
export function explainSession(session: Session, settings: GuardSettings): Explanation[] {
  return [
    status(session),
    ...ending(session),
    context(session, settings),
    ...compaction(session, settings),
    ...origin(session),
  ];
}

const meanings: Readonly<Record<Session['status'], string>> = {
  spawning: 'Its process is starting.',
  working: 'It is working on a turn.',
  waiting_for_input: 'It asks a question or for permission. Answer below.',
  idle: 'It finished its turn and waits for the next message.',
  done: 'It finished, or you stopped it.',
  errored: 'It ended with an error.',
  orphaned: 'Its process disappeared while the daemon was down. Restart it to resume.',
  rate_limited: 'Its provider limits the rate.',
};

function status({ status, status_reason }: Session): Explanation {
  const evidence = status_reason ? ` Evidence: ${sentence(status_reason)}` : ' No evidence yet.';
  return { question: `Why ${words(status)}?`, answer: meanings[status] + evidence };
}

function ending(session: Session): Explanation[] {
  const { status, exit_code, last_error, auto_restart, restart_count, limited_until } = session;
  const parts: string[] = [];
  if (last_error) parts.push(sentence(last_error));
  if (exit_code !== null) parts.push(`Exit code ${exit_code}.`);
  if (status === 'rate_limited' && limited_until) parts.push(`The limit ends at ${limited_until}.`);
  if (auto_restart) parts.push('It restarts automatically after an error.');
  if (restart_count > 0) parts.push(`Restarted ${times(restart_count)} so far.`);
  return parts.length === 0 ? [] : [{ question: 'What happened before?', answer: parts.join(' ') }];
}

function context({ context_tokens: used, context_state }: Session, s: GuardSettings): Explanation {
  const limits = `Warning at ${tokens(s.warn)}, critical at ${tokens(s.critical)}.`;
  const question = 'How full is its context?';
  if (used === null) {
    return { question, answer: `Unknown: the backend has not reported it. ${limits}` };
  }
  const state = context_state ? ` (${context_state})` : '';
  return { question, answer: `${count(used)} tokens${state}. ${limits}` };
}

function compaction({ force_compact, status }: Session, settings: GuardSettings): Explanation[] {
  if (status === 'done' || status === 'errored' || status === 'orphaned') return [];
  const question = 'What happens when the context is critical?';
  if (!settings.guard) return [{ question, answer: 'Nothing: tokens.guard is off.' }];
  const isForced = force_compact === 'inherit' ? settings.forceCompact : force_compact === 'on';
  const idle = settings.autoCompact
    ? 'When idle, it compacts.'
    : 'tokens.auto_compact is off, so it does not compact when idle.';
  const busy = isForced
    ? 'When busy, it is interrupted, compacted and resumed; the turn is lost.'
    : 'When busy, nothing happens.';
  const why =
    force_compact === 'inherit'
      ? `(tokens.force_compact is ${settings.forceCompact ? 'on' : 'off'})`
      : '(set for this agent)';
  return [{ question, answer: `${idle} ${busy} ${why}` }];
}

function origin({ pipeline_id, job_id, parent_id, driver }: Session): Explanation[] {
  const parts: string[] = [];
  if (pipeline_id) parts.push(`It works on job ${job_id} of pipeline ${pipeline_id}.`);
  if (parent_id) parts.push(`It was started by agent ${parent_id}.`);
  if (driver === 'headless') parts.push('It is headless: one run, no input.');
  return parts.length === 0 ? [] : [{ question: 'What started it?', answer: parts.join(' ') }];
}

function sentence(text: string): string {
  return /[.?!…]$/.test(text) ? text : `${text}.`;
}

function times(value: number): string {
  return value === 1 ? 'once' : `${value} times`;
}
