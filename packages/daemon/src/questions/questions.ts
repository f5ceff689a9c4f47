import type { Database, StepCollection } from '@millrace/engine';
import type { World } from '@millrace/kit/world';
import { formatTimestamp } from '@millrace/kit/units';
import { Turns } from '../core/turns.js';
import { fail } from '../core/api.js';
import {
  answerOf,
  checkOpen,
  isSameQuestion,
  type AnswerRequest,
  type QuestionContent,
  type Question,
  type StoredQuestion,
} from './question.js';

export interface QuestionsParts extends World {
  database: Database;
}

/** Delivers an answer to the agent; `gone` when it no longer waits for one. */
export type Deliver = (stored: StoredQuestion, answer: string) => Promise<'taken' | 'gone'>;

export interface QuestionFilter {
  status?: Question['status'] | undefined;
  sessionId?: string | undefined;
  limit: number;
}

export interface AddedQuestion extends StoredQuestion {
  /** False when the question was there already. */
  isNew: boolean;
}

export const maxQuestions = 1000;
export const questionsCollection = 'questions';

/**
 * The questions of all agents, on disk and in memory. Only this process writes them. Answered ones
 * are kept as an audit record, up to `maxQuestions`.
 */
export class Questions {
  readonly #stored = new Map<string, StoredQuestion>();
  /** One answer to a question at a time. */
  readonly #answers = new Turns();
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #listeners = new Set<(added: StoredQuestion) => void>();

  private constructor(private readonly parts: QuestionsParts) {}

  static async open(parts: QuestionsParts): Promise<Questions> {
    const questions = new Questions(parts);
    const collection = parts.database.collection<StoredQuestion>(questionsCollection);
    for await (const { key, data } of collection.stream()) questions.#stored.set(key, data);
    return questions;
  }

  /** Newest first. */
  list({ status, sessionId, limit }: QuestionFilter): Question[] {
    return [...this.#stored.values()]
      .map(({ question }) => question)
      .filter((each) => status === undefined || each.status === status)
      .filter((each) => sessionId === undefined || each.session_id === sessionId)
      .toSorted((a, b) => (a.id < b.id ? 1 : -1))
      .slice(0, limit);
  }

  get(id: string): Question {
    return this.#find(id).question;
  }

  /** Open questions of a session, oldest first. */
  openOf(sessionId: string): StoredQuestion[] {
    return [...this.#stored.values()]
      .filter(({ question }) => question.status === 'open' && question.session_id === sessionId)
      .toSorted((a, b) => (a.question.id < b.question.id ? -1 : 1));
  }

  /** Whether this request of a driver was already added. */
  hasRef(sessionId: string, wanted: string): boolean {
    return [...this.#stored.values()].some(
      ({ question, ref }) => ref === wanted && question.session_id === sessionId,
    );
  }

  #known(sessionId: string, content: QuestionContent): StoredQuestion | undefined {
    const { ref = null } = content;
    const isSame = ({ question, ref: own }: StoredQuestion) =>
      ref === null
        ? own === null && question.status === 'open' && isSameQuestion(question, content)
        : own === ref;
    return [...this.#stored.values()].find(
      (each) => each.question.session_id === sessionId && isSame(each),
    );
  }

  /** Called with each new question. Returns how to stop. */
  onAdded(listener: (added: StoredQuestion) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  askingSessions(): Set<string> {
    const open = [...this.#stored.values()].filter(({ question }) => question.status === 'open');
    return new Set(open.map(({ question }) => question.session_id));
  }

  /**
   * Adds a question once, even when it is observed twice at the same time: by the driver's request
   * id, or by its dialog while that is open. There is no await between the check and the insert in
   * memory.
   */
  async add(sessionId: string, content: QuestionContent): Promise<AddedQuestion> {
    const { clock, random, log } = this.parts;
    const known = this.#known(sessionId, content);
    if (known) return { ...known, isNew: false };
    const now = clock.now();
    const { kind, title, body, tool, options, ref = null } = content;
    const question: Question = {
      id: random.ulid(now),
      session_id: sessionId,
      status: 'open',
      kind,
      title,
      body,
      tool,
      options,
      asked_at: formatTimestamp(now),
      answered_at: null,
      answered_by: null,
      answer: null,
    };
    const stored = { question, ref };
    await this.#put(stored);
    log.info({ question: question.id, session: sessionId, tool, title }, 'question asked');
    for (const listener of this.#listeners) listener(stored);
    return { ...stored, isNew: true };
  }

  /**
   * Answers a question: the answer is checked, delivered to the agent, and recorded. Answers to one
   * question are serialized, and only the first is delivered.
   */
  answer(id: string, request: AnswerRequest, by: string, deliver: Deliver): Promise<Question> {
    return this.#answers.in(id, () => this.#answer(id, request, by, deliver));
  }

  /** Whether an answer is on its way to the agent. */
  isAnswering(id: string): boolean {
    return this.#answers.has(id);
  }

  async #answer(
    id: string,
    request: AnswerRequest,
    by: string,
    deliver: Deliver,
  ): Promise<Question> {
    const stored = this.#find(id);
    const answer = answerOf(stored.question, request);
    checkOpen(stored.question);
    if ((await deliver(stored, answer)) === 'gone') {
      await this.#end(id, { status: 'answered', answered_by: 'terminal', answer: null });
      checkOpen(this.get(id));
    }
    return this.#end(id, { status: 'answered', answered_by: by, answer });
  }

  /** Records that it was answered at the agent itself, where the answer cannot be read. */
  async answeredAtTerminal(id: string): Promise<void> {
    if (this.isAnswering(id)) return;
    await this.#end(id, { status: 'answered', answered_by: 'terminal', answer: null });
  }

  /** The agent does not wait for the answer any more. */
  async close(id: string): Promise<void> {
    await this.#end(id, { status: 'closed', answered_by: null, answer: null });
  }

  /** The question once it has ended, or as it is after `timeoutMs`. */
  async ended(id: string, timeoutMs: number, signal: AbortSignal): Promise<Question> {
    const { clock } = this.parts;
    if (this.get(id).status !== 'open' || timeoutMs === 0 || signal.aborted) return this.get(id);
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    let resume = () => {};
    const woken = new Promise<void>((resolve) => (resume = resolve));
    waiting.add(resume);
    const timer = clock.after(timeoutMs, resume);
    signal.addEventListener('abort', resume, { once: true });
    await woken;
    timer.cancel();
    signal.removeEventListener('abort', resume);
    waiting.delete(resume);
    return this.get(id);
  }

  async #end(
    id: string,
    end: Pick<Question, 'status' | 'answered_by' | 'answer'>,
  ): Promise<Question> {
    const { clock, log } = this.parts;
    const stored = this.#find(id);
    if (stored.question.status !== 'open') return stored.question;
    const question = { ...stored.question, ...end, answered_at: formatTimestamp(clock.now()) };
    await this.#put({ ...stored, question });
    for (const resume of this.#waiting.get(id) ?? []) resume();
    this.#waiting.delete(id);
    const { session_id: session, tool, title, answered_by: by, status } = question;
    const option = question.options.find((each) => each.id === question.answer)?.kind;
    log.info({ question: id, session, tool, title, by, option, status }, 'question ended');
    return question;
  }

  #find(id: string): StoredQuestion {
    const stored = this.#stored.get(id);
    if (stored) return stored;
    throw fail(
      'QUESTION_NOT_FOUND',
      `There is no question "${id.slice(0, 64)}": GET /api/v1/questions lists them.`,
    );
  }

  async #put(stored: StoredQuestion): Promise<void> {
    const { id } = stored.question;
    const surplus = this.#surplus(id);
    this.#stored.set(id, stored);
    for (const old of surplus) this.#stored.delete(old);
    await this.parts.database.transact((target) => {
      const collection: StepCollection<StoredQuestion> = target.collection(questionsCollection);
      collection.put(id, stored);
      for (const old of surplus) collection.delete(old);
    });
  }

  /** The oldest ended questions that make room for one more. */
  #surplus(id: string): string[] {
    if (this.#stored.has(id) || this.#stored.size < maxQuestions) return [];
    return [...this.#stored.values()]
      .filter(({ question }) => question.status !== 'open')
      .map(({ question }) => question.id)
      .toSorted()
      .slice(0, this.#stored.size + 1 - maxQuestions);
  }
}
