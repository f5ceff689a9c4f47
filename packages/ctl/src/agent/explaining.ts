import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Facts } from '@millrace/contract/lists';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { humanAge, humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import type { Sheet } from '../render/table.js';
import { factsText } from '../base/list-text.js';

type Session = DaemonSchema<'Session'>;
const { contextText, sessionTones } = daemonLists;

/** What an agent is doing, the evidence for it, and what the user can do. */
export interface Explanation {
  readonly id: string;
  readonly name: string;
  readonly status: Session['status'];
  readonly meaning: string;
  readonly since: string;
  readonly evidence: string | null;
  readonly context_tokens: number | null;
  readonly context_state: Session['context_state'];
  readonly limited_until: string | null;
  readonly last_error: string | null;
  readonly exit_code: number | null;
  /** Sentences that each name a command. */
  readonly advice: readonly string[];
}

const meanings: Readonly<Record<Session['status'], string>> = {
  spawning: 'its command line is starting',
  working: 'it is in the middle of a turn',
  waiting_for_input: 'it asked a question and waits for the answer',
  idle: 'its turn is over and its prompt is empty',
  done: 'it finished, or was stopped',
  errored: 'it failed',
  orphaned: 'it was lost while the daemon was not running',
  rate_limited: 'its provider is rate limiting it',
};

export function explain(session: Session, now: number): Explanation {
  return {
    id: session.id,
    name: session.name,
    status: session.status,
    meaning: meanings[session.status],
    since: session.status_since,
    evidence: session.status_reason,
    context_tokens: session.context_tokens,
    context_state: session.context_state,
    limited_until: session.limited_until,
    last_error: session.last_error,
    exit_code: session.exit_code,
    advice: [...statusAdvice(session, now), ...contextAdvice(session)].map((line) => asTyped(line)),
  };
}

function statusAdvice(session: Session, now: number): string[] {
  const { id, status, driver } = session;
  const logs = `Read its output: ctl agent logs ${id}`;
  const again = `Restart it where it stopped: ctl agent restart ${id}`;
  switch (status) {
    case 'spawning':
      return [`It should start working soon; if not: ctl agent logs ${id}`];
    case 'working':
      return [`Follow it: ctl agent logs -f ${id}`, `Stop it: ctl agent stop ${id}`];
    case 'waiting_for_input':
      if (driver === 'headless') {
        return ['A headless run accepts no input; stop it and spawn one with --driver tmux.', logs];
      }
      return [
        `Answer it: ctl agent send ${id} "TEXT"`,
        `Or open its terminal: ctl agent attach ${id}`,
      ];
    case 'idle':
      return [`Give it more work: ctl agent send ${id} "TEXT"`, `Or stop it: ctl agent stop ${id}`];
    case 'done':
      return [logs, `Remove it, with its worktree if that is clean: ctl agent remove ${id}`];
    case 'errored':
      return [logs, again];
    case 'orphaned':
      return [again, `Or remove it: ctl agent remove ${id}`];
    case 'rate_limited':
      return [limitAdvice(session, now), 'Or use another backend: ctl backend list'];
  }
}

function limitAdvice({ limited_until: until, backend }: Session, now: number): string {
  if (until === null) return `Wait; it is not known when the limit of ${backend} ends.`;
  const left = Date.parse(until) - now;
  if (left <= 0) return `The limit of ${backend} is over: restart the agent or send it more work.`;
  return `Wait ${humanDuration(left)}, until the limit of ${backend} ends.`;
}

function contextAdvice({ id, context_state: state, force_compact: choice }: Session): string[] {
  if (state !== 'critical') return [];
  const forced = choice === 'on' ? [] : [`or force it: ctl agent compact set ${id} on`];
  return [
    ['Its context is critically full. It is compacted when it is next idle', ...forced].join('; '),
  ];
}

export function explanationSheet(session: Session, now: number, sheet: Sheet): string {
  const { meaning, advice } = explain(session, now);
  const { context_tokens: tokens, context_state: state, status_since: since } = session;
  const facts: Facts = [
    ['agent', `${session.name} (${session.id})`],
    ['status', { text: `${session.status}: ${meaning}`, tone: sessionTones[session.status] }],
    ['since', [since, ' (for ', { since, inSeconds: true }, ')']],
    ['evidence', session.status_reason ?? 'none yet'],
    ['context', tokens === null ? 'not known' : contextText(tokens, state)],
    ['limits', limitsText(session, now)],
    ['last error', session.last_error ?? 'none'],
    ['exit code', session.exit_code === null ? null : String(session.exit_code)],
    ...advice.map((line, at) => [at === 0 ? 'next steps' : '', line] as const),
  ];
  return factsText(facts, now, sheet);
}

function limitsText({ limited_until: until }: Session, now: number): string {
  if (until === null) return 'none';
  const at = Date.parse(until);
  return at <= now ? `ended ${humanAge(at, now)}` : `until ${until} (${humanAge(at, now)})`;
}
