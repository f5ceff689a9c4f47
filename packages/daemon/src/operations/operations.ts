import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import { fail, invalid } from '../core/api.js';
import { valueOf } from '../spend/value.js';
import { isEnded, sessionsMeant } from '../core/session.js';
import { callRef } from '../questions/question.js';
import { tailOf } from '../sessions/answer.js';
import type { DaemonContext } from './context.js';
import { boardColumns, columnOf } from '../core/board.js';
import { isForced } from '../core/guard.js';

const maxCandidates = 10;

/** One session by its id, its name or a prefix of its id. */
export async function getSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  words: string,
): Promise<DaemonSchema<'Session'>> {
  const exact = await sessions.find(words);
  if (exact) return exact;
  const [session, ...others] = sessionsMeant(await sessions.list(), words);
  if (!session) {
    throw fail(
      'SESSION_NOT_FOUND',
      `Session "${words.slice(0, 64)}" does not exist. GET /api/v1/sessions lists all sessions.`,
    );
  }
  if (others.length === 0) return session;
  const candidates = [session, ...others]
    .slice(0, maxCandidates)
    .map(({ id, name }) => ({ id, name }));
  const shown = candidates.map(({ id, name }) => `${id} (${name})`).join(', ');
  throw fail(
    'SESSION_AMBIGUOUS',
    `"${words.slice(0, 64)}" matches ${others.length + 1} sessions: ${shown}. Use an id.`,
    { members: { candidates } },
  );
}

/** The sessions by what they need next. */
export async function getBoard({
  sessions,
  branches,
  questions,
}: Pick<DaemonContext, 'sessions' | 'branches' | 'questions'>): Promise<DaemonSchema<'Board'>> {
  const all = await sessions.list();
  const asking = questions.askingSessions();
  // Only a merge moves a session from here, so only these are compared with their base.
  const toReview = all.filter((each) => columnOf(each, false) === 'review');
  const merged = await branches.merged(toReview);
  const placed = all.map((session) => ({
    session,
    column: asking.has(session.id) ? 'needs_you' : columnOf(session, merged.has(session.id)),
  }));
  return {
    columns: boardColumns.map((name) => ({
      name,
      sessions: placed.filter(({ column }) => column === name).map(({ session }) => session),
    })),
  };
}

/** The live configuration, with the source of each value. */
export function getConfig(
  { settings }: DaemonContext,
  access: 'full' | 'read_only',
): DaemonSchema<'ConfigView'> {
  const view = settings.view();
  if (access === 'full') return view;
  return { ...view, entries: view.entries.map((entry) => withoutSecretPath(entry)) };
}

/** The path of a webhook is enough to post to it, so a read-only caller sees only the host. */
function withoutSecretPath(entry: DaemonSchema<'ConfigEntry'>): DaemonSchema<'ConfigEntry'> {
  const { key, value } = entry;
  if (key !== 'notify.webhook_url' || typeof value !== 'string' || value === '') return entry;
  return {
    ...entry,
    value: URL.canParse(value) ? `${new URL(value).origin}/********` : '********',
  };
}

type Rollup = DaemonSchema<'SpendRollup'>;

/** Spend of the agents, from their transcripts. */
export async function getSpend(context: DaemonContext): Promise<Rollup> {
  const own = await context.sessions.list();
  const rollup = await spendIn(context).read(own);
  return { ...rollup, by_agent: byOurSessions(rollup.by_agent, own) };
}

/** Five-hour blocks of one backend. */
export async function getUsageBlocks(
  context: DaemonContext,
  backend = 'claude',
): Promise<DaemonSchema<'UsageBlocks'>> {
  return { backend, blocks: await spendIn(context).blocks(backend) };
}

/** What the agents brought for their price. */
export async function getUsageValue(context: DaemonContext): Promise<DaemonSchema<'UsageValue'>> {
  const { by_agent } = await spendIn(context).read();
  const prices = by_agent.flatMap(({ key, exact_usd: usd }) =>
    typeof usd === 'number' ? [[key, usd] as const] : [],
  );
  const plans = await context.plans.list({ name: 'value' });
  const planTasks = plans.flatMap(({ id, tasks }) =>
    tasks.map(({ key, status }) => [`${id}/${key}`, status] as const),
  );
  return valueOf(await context.sessions.list(), new Map(prices), new Map(planTasks));
}

function spendIn({ spend }: DaemonContext): NonNullable<DaemonContext['spend']> {
  if (spend) return spend;
  throw fail(
    'SAVINGS_DISABLED',
    'The setting savings is off. Set savings to true and restart the daemon.',
  );
}

/**
 * Transcripts identify an agent by its backend's session id. Agents spawned here are shown with
 * the daemon's own session id.
 */
function byOurSessions(
  rows: Rollup['by_agent'],
  sessions: readonly DaemonSchema<'Session'>[],
): Rollup['by_agent'] {
  const ids = new Map(
    sessions.flatMap(({ id, backend_session_id: theirs }) => (theirs ? [[theirs, id]] : [])),
  );
  return rows.map((row) => {
    const id = ids.get(row.key);
    return id === undefined ? row : { ...row, key: id };
  });
}

/** Overrides forced compaction for one agent, and returns the effective value. */
export async function setForceCompact(
  context: Pick<DaemonContext, 'sessions' | 'forceCompact'>,
  words: string,
  { state }: DaemonSchema<'SetForceCompactRequest'>,
): Promise<DaemonSchema<'ForceCompactState'>> {
  const { sessions, forceCompact } = context;
  const { id } = await getSession(context, words);
  const { force_compact } = await sessions.setForceCompact(id, state);
  return { id, state: force_compact, effective: isForced(force_compact, forceCompact()) };
}

const maxOutputBytes = 16_384;
const summaryLines = 200;

/** What an agent has done: its state, its last words and the size of its changes. */
export async function getSessionSummary(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  words: string,
): Promise<DaemonSchema<'SessionSummary'>> {
  const { sessions, workbench } = context;
  const session = await getSession(context, words);
  const answer = (await sessions.lastAnswer(session.id)) ?? (await outputOf(sessions, session.id));
  const output = tailOf(answer, maxOutputBytes);
  // A directory without git, or one that is gone, has no changes to show.
  const diff = await workbench.diff(session, undefined).catch((error: unknown) => {
    if (error instanceof Refusal) return null;
    throw error;
  });
  const size = diff && {
    files: diff.file_count,
    additions: diff.additions,
    deletions: diff.deletions,
  };
  return { session, output, diff: size };
}

async function outputOf(sessions: DaemonContext['sessions'], id: string): Promise<string> {
  const { lines } = await sessions.output(id, { limit: summaryLines });
  return lines.join('\n');
}

const atWork = new Set<DaemonSchema<'SessionStatus'>>(['spawning', 'working']);

/** Waits until an agent does not work any more. */
export async function waitForSession(
  context: Pick<DaemonContext, 'sessions'>,
  words: string,
  { timeoutMs, clock, signal }: { timeoutMs: number; clock: Clock; signal: AbortSignal },
): Promise<DaemonSchema<'SessionWait'>> {
  const { sessions } = context;
  const { id } = await getSession(context, words);
  const now = async () => {
    const session = await getSession(context, id);
    return { session, timed_out: atWork.has(session.status) };
  };
  const ended = new AbortController();
  const over = new Promise<void>((resolve) => {
    const unsubscribe = sessions.onChange(({ before, after }) => {
      if ((after ?? before)?.id !== id) return;
      if (!after || !atWork.has(after.status)) resolve();
    });
    ended.signal.addEventListener('abort', unsubscribe, { once: true });
  });
  try {
    const first = await now();
    if (!first.timed_out || timeoutMs === 0) return first;
    const signals = AbortSignal.any([ended.signal, signal]);
    await Promise.race([over, clock.sleep(timeoutMs, signals).catch(() => undefined)]);
    return await now();
  } finally {
    ended.abort();
  }
}

/** Asks a person in the name of a session. */
export async function createQuestion(
  context: Pick<DaemonContext, 'sessions' | 'questions'>,
  request: DaemonSchema<'AskRequest'>,
  {
    agent,
    random,
    clock,
    signal,
  }: { agent: string | undefined; random: Random; clock: Clock; signal: AbortSignal },
): Promise<DaemonSchema<'Question'>> {
  const {
    session_id: words = agent,
    title,
    body = '',
    options = [],
    wait_ms: waitMs = 0,
  } = request;
  if (words === undefined) throw invalid('session_id', 'is needed, unless an agent asks itself');
  const session = await getSession(context, words);
  if (isEnded(session)) {
    throw fail('SESSION_STATE', `${session.name} has ended, so it cannot ask anything.`);
  }
  const { question } = await context.questions.add(session.id, {
    kind: options.length > 0 ? 'choice' : 'text',
    title,
    body,
    tool: null,
    options: options.map((label, at) => ({ id: String(at + 1), label, kind: 'choice' })),
    ref: callRef(random.ulid(clock.now())),
  });
  return context.questions.ended(question.id, waitMs, signal);
}
