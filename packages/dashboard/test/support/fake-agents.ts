import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Page, Route } from 'playwright-core';
import { boardColumns, columnOf } from '../../../daemon/src/core/board.js';
import type { Question } from '../../src/questions/api.js';

type Session = DaemonSchema<'Session'>;

interface Call {
  path: string;
  body: unknown;
}

/** Answers the requests of a page about agents, so that a test needs no agent that runs. */
export class FakeAgents {
  readonly sessions: Session[] = [];
  readonly questions: Question[] = [];
  readonly branches: { agent_id: string; ahead: number | null; merged: boolean | null }[] = [];
  readonly pipelines: unknown[] = [];
  diff: unknown;
  /** The spend; that of the daemon unless set. */
  spend: unknown;
  /** The answer to an action; 200 with an empty object unless told. */
  refusals = new Map<string, { status: number; body: object }>();
  readonly calls: Call[] = [];

  addSession(name: string, status: Session['status'], more: Partial<Session> = {}): Session {
    const at = new Date(Date.now() - 60_000 * this.sessions.length).toISOString();
    const session = {
      ...emptySession,
      id: `S${String(this.sessions.length).padStart(5, '0')}`,
      name,
      status,
      status_since: at,
      created_at: at,
      updated_at: at,
      ...more,
    } as Session;
    this.sessions.push(session);
    return session;
  }

  addQuestion(session: Session, more: Partial<Question> = {}): Question {
    const question: Question = {
      id: `Q${this.questions.length}`,
      session_id: session.id,
      status: 'open',
      kind: 'permission',
      title: 'Do you want to proceed?',
      body: 'npm publish --dry-run',
      tool: 'Bash',
      options: [
        { id: '1', label: 'Yes', kind: 'allow_once' },
        { id: '2', label: 'Yes, for this session', kind: 'allow_always' },
        { id: '3', label: 'No', kind: 'reject' },
      ],
      asked_at: new Date().toISOString(),
      answered_at: null,
      answered_by: null,
      answer: null,
      ...more,
    };
    this.questions.push(question);
    return question;
  }

  /** For `prepare` of a page. */
  readonly install = async (page: Page): Promise<void> => {
    await page.route(
      /\/api\/v1\/(sessions|board|questions|collab\/branches|pipelines|spend)([/?:]|$)/,
      (route) => this.#answer(route),
    );
  };

  async #answer(route: Route): Promise<void> {
    const request = route.request();
    const path = new URL(request.url()).pathname.replace('/api/v1/', '');
    if (request.method() === 'POST') return this.#act(route, path);
    const [kind, id, part] = path.split('/');
    const session = this.sessions.find((one) => one.id === id);
    if (path === 'sessions') return route.fulfill({ json: { sessions: this.sessions } });
    if (path === 'board') return route.fulfill({ json: this.#board() });
    if (path === 'pipelines') return route.fulfill({ json: { pipelines: this.pipelines } });
    if (path === 'spend') {
      return this.spend === undefined ? route.fallback() : route.fulfill({ json: this.spend });
    }
    if (path === 'collab/branches') return route.fulfill({ json: { branches: this.branches } });
    if (path === 'questions') {
      const questions = this.questions.filter(({ status }) => status === 'open');
      return route.fulfill({ json: { questions } });
    }
    if (kind === 'sessions' && session && part === undefined) {
      return route.fulfill({ json: session });
    }
    if (part === 'output') return route.fulfill({ json: { lines: [], next: 0 } });
    if (part === 'diff') return route.fulfill({ json: this.diff });
    return route.fulfill({ status: 404, json: { code: 'SESSION_NOT_FOUND', detail: 'Not found' } });
  }

  #board(): DaemonSchema<'Board'> {
    const merged = new Set(this.branches.flatMap((one) => (one.merged ? one.agent_id : [])));
    const isIn = (name: string) => (session: Session) =>
      columnOf(session, merged.has(session.id)) === name;
    const columns = boardColumns.map((name) => ({
      name,
      sessions: this.sessions.filter(isIn(name)),
    }));
    return { columns };
  }

  async #act(route: Route, path: string): Promise<void> {
    this.calls.push({ path, body: route.request().postDataJSON() as unknown });
    const refusal = this.refusals.get(path.split(':')[1]!);
    if (refusal) return route.fulfill({ status: refusal.status, json: refusal.body });
    const question = this.questions.find(({ id }) => path === `questions/${id}:answer`);
    if (question) question.status = 'answered';
    return route.fulfill({ json: question ?? {} });
  }
}

const emptySession = {
  backend: 'claude',
  backend_session_id: null,
  model: null,
  driver: 'tmux',
  repo: '/src/mill',
  worktree: null,
  branch: null,
  workdir: '/src/mill',
  prompt: 'Fix the failing test',
  tags: [],
  parent_id: null,
  pid: null,
  exit_code: null,
  auto_restart: false,
  restart_count: 0,
  pipeline_id: null,
  job_id: null,
  context_tokens: null,
  context_state: 'unknown',
  force_compact: 'inherit',
  limited_until: null,
  last_error: null,
  status_reason: null,
};
