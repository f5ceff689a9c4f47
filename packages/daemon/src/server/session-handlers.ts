import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { ok } from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import type { World } from '@millrace/kit/world';
import type { DaemonContext } from '../operations/context.js';
import {
  createQuestion,
  getBoard,
  getSession,
  getSessionSummary,
  setForceCompact,
  waitForSession,
} from '../operations/operations.js';
import { checkChild, checkOwn, visibleSessions } from './agent-rights.js';
import type { ServedHandlers } from '../core/api.js';
import type { Caller } from './access/authenticator.js';

const defaultLines = 500;
const maxWaitMs = 600_000;

export function sessionHandlers(
  context: Pick<DaemonContext, 'sessions' | 'workbench'>,
  clock: Clock,
) {
  const { sessions } = context;
  const idOf = async ({ id }: { id: string }, { agent }: Caller) => {
    if (agent !== undefined) await checkChild(context, agent, id);
    return (await getSession(context, id)).id;
  };
  const forId = <Body>(operation: (id: string) => Promise<Body>) =>
    ok(async ({ params, principal }: { params: { id: string }; principal: Caller }) =>
      operation(await idOf(params, principal)),
    );
  /**
   * What an agent starts with its own token is its child and passes all gates. It works where its
   * parent works, unless another place is named.
   */
  const childOf = async (agent: string, body: DaemonSchema<'SpawnRequest'>) => {
    const parent = await getSession(context, agent);
    const isPlaced = body.repo !== undefined || body.cwd !== undefined;
    const place = body.branch === undefined ? { cwd: parent.workdir } : { repo: parent.workdir };
    return { ...body, ...(!isPlaced && place), parent_id: agent, force: false };
  };
  return {
    spawnSession: async ({ body, headers, principal: { self: agent } }) => {
      const key = headers['Idempotency-Key'];
      // The prefix separates callers' keys from the daemon's own, and those of each agent.
      const owner = agent === undefined ? 'api' : `agent:${agent}`;
      const origin = { agent, ...(key !== undefined && { idempotencyKey: `${owner}:${key}` }) };
      const request = agent === undefined ? body : await childOf(agent, body);
      const { session, isReplay } = await sessions.spawn(request, origin);
      return {
        status: 201,
        body: session,
        headers: {
          Location: `/api/v1/sessions/${session.id}`,
          'Idempotent-Replayed': isReplay ? 'true' : undefined,
        },
      };
    },
    listSessions: ok(async ({ principal }) => ({
      sessions: [...visibleSessions(principal, await sessions.list())],
    })),
    waitForSession: ok(async ({ params, body, principal, signal }) => {
      const { timeout_ms: timeoutMs = maxWaitMs } = body;
      return waitForSession(context, await idOf(params, principal), { timeoutMs, clock, signal });
    }),
    getSessionSummary: forId((id) => getSessionSummary(context, id)),
    getSession: forId((id) => getSession(context, id)),
    deleteSession: forId((id) => sessions.remove(id)),
    getSessionOutput: ok(async ({ params, principal, query: { after, limit = defaultLines } }) =>
      sessions.output(
        await idOf(params, principal),
        after === undefined ? { limit } : { after, limit },
      ),
    ),
    getSessionScreen: forId((id) => sessions.screen(id)),
    sendToSession: ok(async ({ params, body, principal }) =>
      sessions.send(await idOf(params, principal), body.text),
    ),
    stopSession: forId((id) => sessions.stop(id)),
    serveSession: forId((id) => sessions.serve(id)),
    restartSession: forId((id) => sessions.restart(id)),
  } satisfies Partial<ServedHandlers>;
}

const defaultQuestions = 200;

export function questionHandlers(
  context: Pick<DaemonContext, 'questions' | 'sessions'>,
  { clock, random }: Pick<World, 'clock' | 'random'>,
) {
  return {
    createQuestion: async ({ body, principal, signal }) => {
      const { self: agent } = principal;
      checkOwn(principal, body.session_id ?? agent ?? '');
      const question = await createQuestion(context, body, { agent, random, clock, signal });
      return { status: 201, body: question };
    },
    waitForQuestion: async ({ params, body: { timeout_ms: waitMs = maxWaitMs }, ...call }) => {
      checkOwn(call.principal, context.questions.get(params.id).session_id);
      const ended = await context.questions.ended(params.id, waitMs, call.signal);
      return { status: 200, body: ended };
    },
    listQuestions: ok(({ query: { status, session_id: sessionId, limit = defaultQuestions } }) => ({
      questions: context.questions.list({ status, sessionId, limit }),
    })),
    getQuestion: ({ params, principal }) => {
      const question = context.questions.get(params.id);
      checkOwn(principal, question.session_id);
      return { status: 200, body: question };
    },
    answerQuestion: ok(({ params, body, principal }) =>
      answerQuestion(context, params.id, body, principal.name),
    ),
  } satisfies Partial<ServedHandlers>;
}

/** Answers a question, and waits until the agent has accepted the answer. */
export function answerQuestion(
  { questions, sessions }: Pick<DaemonContext, 'questions' | 'sessions'>,
  id: string,
  request: DaemonSchema<'AnswerRequest'>,
  by: string,
): Promise<DaemonSchema<'Question'>> {
  return questions.answer(id, request, by, (stored, answer) => sessions.answer(stored, answer));
}

export function workbenchHandlers(
  context: Pick<DaemonContext, 'sessions' | 'branches' | 'questions' | 'workbench'>,
) {
  const { sessions, workbench } = context;
  const sessionOf = ({ id }: { id: string }) => getSession(context, id);
  return {
    getBoard: ok(() => getBoard(context)),
    getSessionDiff: ok(
      async ({ params, query: { base } }) => await workbench.diff(await sessionOf(params), base),
    ),
    commitSession: async ({ params, body, principal, log }) => {
      const session = await sessionOf(params);
      const result = await workbench.commit(session, body ?? {});
      await sessions.setMerged(session.id, false);
      return audited(log, principal, 'commit', result);
    },
    pushSession: async ({ params, body, principal, log }) =>
      audited(log, principal, 'push', await workbench.push(await sessionOf(params), body ?? {})),
    openPullRequest: async ({ params, body, principal, log }) =>
      audited(
        log,
        principal,
        'open-pr',
        await workbench.openPr(await sessionOf(params), body ?? {}),
      ),
    mergeSession: async ({ params, body, principal, log }) => {
      const session = await sessionOf(params);
      const result = await workbench.merge(session, body ?? {});
      await sessions.setMerged(session.id, true);
      return audited(log, principal, 'merge', result);
    },
    rebaseSession: async ({ params, body, principal, log }) =>
      audited(
        log,
        principal,
        'rebase',
        await workbench.rebase(await sessionOf(params), body ?? {}),
      ),
  } satisfies Partial<ServedHandlers>;
}

/** Responds, and logs the caller and the branch change. */
function audited<Result extends object>(log: Log, { name }: Caller, action: string, body: Result) {
  log.info({ principal: name, action, ...body }, 'branch changed');
  return { status: 200 as const, body };
}

export function pipelineHandlers({ pipelines }: Pick<DaemonContext, 'pipelines'>) {
  return {
    listPipelines: ok(async () => ({ pipelines: await pipelines.list() })),
    createPipeline: async ({ body }) => {
      const pipeline = await pipelines.create(body);
      const headers = { Location: `/api/v1/pipelines/${pipeline.id}` };
      return { status: 201, body: pipeline, headers };
    },
    getPipeline: ok(({ params }) => pipelines.get(params.id)),
    startPipeline: ok(({ params }) => pipelines.start(params.id)),
    cancelPipeline: ok(({ params }) => pipelines.cancel(params.id)),
  } satisfies Partial<ServedHandlers>;
}

/** Plans; an agent's own token reaches those that it and its agents have made. */
export function planHandlers({ plans }: Pick<DaemonContext, 'plans'>) {
  return {
    listPlans: ok(async ({ principal }) => ({ plans: await plans.list(principal) })),
    createPlan: async ({ body, principal }) => {
      const plan = await plans.create(principal, body);
      return { status: 201, body: plan, headers: { Location: `/api/v1/plans/${plan.id}` } };
    },
    getPlan: ok(({ params, principal }) => plans.get(principal, params.id)),
    cancelPlan: ok(({ params, principal }) => plans.cancel(principal, params.id)),
    pickSession: ok(({ params: { id, key }, body, principal }) =>
      plans.pick(principal, id, key, body.session_id),
    ),
    claimPlanTask: ok(({ params: { id, key }, body, principal }) =>
      plans.claim(principal, id, key, body.by),
    ),
    completePlanTask: ok(({ params: { id, key }, body, principal }) =>
      plans.complete(principal, id, key, body),
    ),
    listReadyTasks: ok(async ({ principal }) => ({ tasks: await plans.ready(principal) })),
  } satisfies Partial<ServedHandlers>;
}

const defaultNotes = 200;

/** Context guard and inbox. */
export function inboxHandlers(
  context: Pick<DaemonContext, 'sessions' | 'notify' | 'forceCompact'>,
) {
  return {
    setForceCompact: ok(({ params, body }) => setForceCompact(context, params.id, body)),
    listInbox: ok(async ({ query: { unread = false, limit = defaultNotes } }) => ({
      notes: await context.notify.list({ unread, limit }),
    })),
    markNoteRead: ok(({ params }) => context.notify.markRead(params.id)),
  } satisfies Partial<ServedHandlers>;
}
