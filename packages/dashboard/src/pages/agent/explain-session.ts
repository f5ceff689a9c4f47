import type { DaemonSchema } from '@millrace/contract/daemon';
import { count, tokens, words } from '../../parts/format.js';
import type { GuardSettings } from '../../sessions/settings.js';

type Session = DaemonSchema<'Session'>;

export interface Explanation {
  question: string;
  answer: string;
}

/** Why an agent stands as it does and what will happen next, from the evidence on record. */
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
  spawning: 'Its process is being started.',
  working: 'It is in the middle of a turn.',
  waiting_for_input: 'It has asked a question or for a permission. Answer it below.',
  idle: 'It has finished a turn and shows an empty prompt. Send it something to go on.',
  done: 'It has ended well, or it was stopped.',
  errored: 'It has ended badly.',
  orphaned: 'It was lost while the daemon was away. Restart it to go on where it was.',
  rate_limited: 'Its provider refuses to serve it for now.',
};

function status({ status, status_reason }: Session): Explanation {
  const evidence = status_reason
    ? ` Evidence: ${sentence(status_reason)}`
    : ' There is no evidence yet.';
  return { question: `Why ${words(status)}?`, answer: meanings[status] + evidence };
}

function ending(session: Session): Explanation[] {
  const { status, exit_code, last_error, auto_restart, restart_count, limited_until } = session;
  const parts: string[] = [];
  if (last_error) parts.push(sentence(last_error));
  if (exit_code !== null) parts.push(`Its process ended with ${exit_code}.`);
  if (status === 'rate_limited' && limited_until) parts.push(`The limit ends at ${limited_until}.`);
  if (auto_restart) parts.push('It is restarted when its process ends with an error.');
  if (restart_count > 0) parts.push(`Restarted ${times(restart_count)} so far.`);
  return parts.length === 0 ? [] : [{ question: 'What went before?', answer: parts.join(' ') }];
}

function context({ context_tokens: used, context_state }: Session, s: GuardSettings): Explanation {
  const limits = `A warning comes at ${tokens(s.warn)}, critical is ${tokens(s.critical)}.`;
  const question = 'How full is its context?';
  if (used === null) {
    return { question, answer: `Unknown: its backend has not reported it. ${limits}` };
  }
  const state = context_state ? `, which is ${context_state}` : '';
  return { question, answer: `${count(used)} tokens${state}. ${limits}` };
}

function compaction({ force_compact, status }: Session, settings: GuardSettings): Explanation[] {
  if (status === 'done' || status === 'errored' || status === 'orphaned') return [];
  const question = 'What happens when it is critical?';
  if (!settings.guard) return [{ question, answer: 'Nothing: tokens.guard is off.' }];
  const isForced = force_compact === 'inherit' ? settings.forceCompact : force_compact === 'on';
  const idle = settings.autoCompact
    ? 'When it is idle it is told to compact.'
    : 'tokens.auto_compact is off, so it is not told to compact when it is idle.';
  const busy = isForced
    ? 'When it is busy it is interrupted, compacted and told to go on; the turn is lost.'
    : 'When it is busy it is left alone.';
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
  if (driver === 'headless') parts.push('It is a single run and takes no input.');
  return parts.length === 0
    ? []
    : [{ question: 'Where does it come from?', answer: parts.join(' ') }];
}

function sentence(text: string): string {
  return /[.?!…]$/.test(text) ? text : `${text}.`;
}

function times(value: number): string {
  return value === 1 ? 'once' : `${value} times`;
}
