import type { Log } from '@millrace/kit/log';
import { isEnded } from '../core/session.js';
import { fail } from '../core/refusals.js';
import { decide, type PolicyRule } from '../questions/policy.js';
import { isSameAsked, type Asked, type StoredQuestion } from '../questions/question.js';
import type { Questions } from '../questions/questions.js';
import type { SessionBook } from './book.js';
import type { Dialog } from './dialog.js';
import type { Entry } from './handle.js';
import type { SessionChange } from './port.js';

export interface AskingParts {
  book: SessionBook;
  log: Log;
  questions: Questions;
  /** `permissions.policy`. */
  policy: readonly PolicyRule[];
  /** Gives an answer to the agent. */
  answer: (stored: StoredQuestion, answer: string) => Promise<'taken' | 'gone'>;
}

/** Turns what agents ask into questions, and answers those that the policy decides. */
export class Asking {
  readonly #parts: AskingParts;
  #work: Promise<void> = Promise.resolve();

  constructor(parts: AskingParts) {
    this.#parts = parts;
    parts.book.onChange((change) => this.#handleChange(change));
  }

  /** Closes the questions of agents that ended while no daemon ran. */
  async begin(): Promise<void> {
    const { book, questions } = this.#parts;
    for (const id of questions.askingSessions()) {
      const entry = book.get(id);
      if (!entry || isEnded(entry.session)) await this.#closeAll(id);
    }
  }

  settled(): Promise<void> {
    return this.#work;
  }

  /**
   * Compares the dialog on the screen with the open questions of the agent. True when the policy
   * has answered it.
   */
  async observe({ session, handle }: Entry, dialog: Dialog | undefined): Promise<boolean> {
    const { book, questions } = this.#parts;
    // It was given an answer or a text since its screen was read.
    if (book.get(session.id)?.handle.inputAt !== handle.inputAt) return false;
    const open = questions.openOf(session.id).filter(({ ref }) => ref === null);
    const isShown = ({ question }: StoredQuestion) => !!dialog && isSameAsked(question, dialog);
    for (const each of open) {
      if (!isShown(each)) await questions.answeredAtTerminal(each.question.id);
    }
    if (!dialog || open.some(isShown)) return false;
    return this.ask(session, dialog);
  }

  /** Asks, and lets the policy answer; true when it has. */
  async ask(session: { id: string; backend: string }, asked: Asked): Promise<boolean> {
    const { questions, policy, log } = this.#parts;
    const { question } = await questions.ask(session.id, asked);
    const decision = decide(policy, session.backend, question);
    if (!decision) return false;
    try {
      const request = { option_id: decision.optionId };
      await questions.answer(question.id, request, 'policy', this.#parts.answer);
    } catch (error) {
      log.warn({ err: error, question: question.id }, 'policy could not answer question');
      return false;
    }
    const { tool, body } = question;
    const { action } = decision;
    log.info({ question: question.id, session: session.id, tool, body, action }, 'policy applied');
    return true;
  }

  #handleChange({ before, after }: SessionChange): void {
    const id = after?.id ?? before?.id;
    if (id === undefined || (after && !isEnded(after))) return;
    if (this.#parts.questions.openOf(id).length === 0) return;
    this.#work = this.#work
      .then(() => this.#closeAll(id))
      .catch((error: unknown) => {
        this.#parts.log.error({ err: error, session: id }, 'failed to close questions');
      });
  }

  async #closeAll(id: string): Promise<void> {
    const { questions } = this.#parts;
    for (const { question } of questions.openOf(id)) await questions.close(question.id);
  }
}

/** The refusal when the dialog is still there after the choice. */
export function notTaken(): Error {
  return fail(
    'SESSION_STATE',
    'The agent did not take the answer. Open its terminal with `ctl agent attach`.',
  );
}
