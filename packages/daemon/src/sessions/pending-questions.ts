import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { formatDuration } from '@millrace/kit/units';
import type { PendingPermission } from '../acp-host/state.js';
import { isEnded, type Entry } from '../core/session.js';
import {
  decide,
  isFromCall,
  isFromPlan,
  isSameQuestion,
  type QuestionContent,
  type StoredQuestion,
} from '../questions/question.js';
import type { Questions } from '../questions/questions.js';
import { contentOf, permissionRef } from './evidence/acp-evidence.js';
import type { SessionSettings } from './cli/settings.js';
import type { SessionStore } from './session-store.js';
import type { Dialog } from './evidence/dialog.js';
import type { OpenRequest } from './evidence/observation.js';
import type { SessionChange } from './port.js';

export interface PendingQuestionsParts {
  store: SessionStore;
  log: Log;
  questions: Questions;
  settings: SessionSettings;
  clock: Clock;
  /** Delivers an answer to the agent; `message` goes to one that is denied a permission. */
  deliver: (stored: StoredQuestion, answer: string, message?: string) => Promise<'taken' | 'gone'>;
}

/** Turns requests of agents into questions, and answers those that the policy decides. */
export class PendingQuestions {
  #work: Promise<void> = Promise.resolve();

  constructor(private readonly parts: PendingQuestionsParts) {
    parts.store.onChange((change) => this.#handleChange(change));
  }

  /** Closes the questions of agents that ended while no daemon ran. */
  async begin(): Promise<void> {
    const { store, questions } = this.parts;
    for (const id of questions.askingSessions()) {
      const entry = store.get(id);
      if (!entry || isEnded(entry.session)) await this.#closeAll(id);
    }
  }

  settled(): Promise<void> {
    return this.#work;
  }

  /** Compares what an agent asks with its open questions. True when the policy has answered it. */
  observe(entry: Entry, request: OpenRequest): Promise<boolean> {
    return 'permissions' in request
      ? this.#observePermissions(entry, request.permissions)
      : this.#observeDialog(entry, request.dialog);
  }

  async #observeDialog({ session, handle }: Entry, dialog: Dialog | undefined): Promise<boolean> {
    const { store, questions } = this.parts;
    // It got an answer or a text since its screen was read.
    if (store.get(session.id)?.handle.inputAt !== handle.inputAt) return false;
    const open = questions.openOf(session.id).filter(({ ref }) => ref === null);
    const isShown = ({ question }: StoredQuestion) => !!dialog && isSameQuestion(question, dialog);
    for (const each of open) {
      if (!isShown(each)) await questions.answeredAtTerminal(each.question.id);
    }
    if (!dialog || open.some(isShown)) return false;
    return this.#add(session, dialog);
  }

  /** An agent without a screen may wait for several permissions. */
  async #observePermissions(
    { session, handle }: Entry,
    pending: readonly PendingPermission[],
  ): Promise<boolean> {
    const { questions } = this.parts;
    const refs = new Map(pending.map((each) => [permissionRef(handle.starts, each.id), each]));
    for (const { question, ref } of questions.openOf(session.id)) {
      if (ref === null || isFromCall(ref) || isFromPlan(ref)) continue;
      if (!refs.has(ref) && !questions.isAnswering(question.id)) {
        await questions.close(question.id);
      }
    }
    if (session.driver === 'headless') await this.#denyExpired(session.id);
    let isAnswered = false;
    for (const [ref, permission] of refs) {
      if (questions.hasRef(session.id, ref)) continue;
      isAnswered = (await this.#add(session, contentOf(permission, ref))) || isAnswered;
    }
    return isAnswered;
  }

  /** There may be no person to answer, and a headless run has to end. */
  async #denyExpired(id: string): Promise<void> {
    const { questions, clock } = this.parts;
    const timeoutMs = this.parts.settings.values.permissions.timeout;
    for (const { question } of questions.openOf(id)) {
      if (clock.now() - Date.parse(question.asked_at) < timeoutMs) continue;
      const option = question.options.find(({ kind }) => kind === 'reject');
      if (!option || questions.isAnswering(question.id)) continue;
      const message = `Nobody answered within ${formatDuration(timeoutMs)}.`;
      await this.#answer(question.id, option.id, 'timeout', message);
    }
  }

  /** Adds a question, and lets the policy answer; true when it has. */
  async #add(session: { id: string; backend: string }, content: QuestionContent): Promise<boolean> {
    const { questions, settings, log } = this.parts;
    const { question, isNew } = await questions.add(session.id, content);
    if (!isNew) return false;
    const decision = decide(settings.values.permissions.policy, session.backend, question);
    if (!decision) return false;
    if (!(await this.#answer(question.id, decision.optionId, 'policy'))) return false;
    const { tool, body } = question;
    const { action } = decision;
    log.info({ question: question.id, session: session.id, tool, body, action }, 'policy applied');
    return true;
  }

  /** Answers without a person; false when the agent did not accept it. */
  async #answer(id: string, option: string, by: string, message?: string): Promise<boolean> {
    const { questions, log } = this.parts;
    try {
      await questions.answer(id, { option_id: option }, by, (...answer) =>
        this.parts.deliver(...answer, message),
      );
      return true;
    } catch (error) {
      log.warn({ err: error, question: id, by }, 'failed to answer question');
      return false;
    }
  }

  #handleChange({ before, after }: SessionChange): void {
    const id = after?.id ?? before?.id;
    if (id === undefined || (after && !isEnded(after))) return;
    if (this.parts.questions.openOf(id).length === 0) return;
    this.#work = this.#work
      .then(() => this.#closeAll(id))
      .catch((error: unknown) => {
        this.parts.log.error({ err: error, session: id }, 'failed to close questions');
      });
  }

  async #closeAll(id: string): Promise<void> {
    const { questions, store } = this.parts;
    const isDeleted = !store.get(id);
    for (const { question, ref } of questions.openOf(id)) {
      // A plan asks about the work of an agent that has ended.
      if (isDeleted || !isFromPlan(ref)) await questions.close(question.id);
    }
  }
}
