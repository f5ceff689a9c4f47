import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';

export type Question = DaemonSchema<'Question'>;
export type QuestionOption = DaemonSchema<'QuestionOption'>;
export type AnswerRequest = DaemonSchema<'AnswerRequest'>;

/** Drivers cut the body of a question here. */
export const maxBodyLength = 4_000;

/** The content of an agent's question. */
export type QuestionContent = Pick<Question, 'kind' | 'title' | 'body' | 'tool' | 'options'> & {
  /** How the driver finds the request again; undefined for a dialog on the screen. */
  ref?: string | undefined;
};

/** A question with the fields that only its driver needs. */
export interface StoredQuestion {
  question: Question;
  ref: string | null;
}

/** The answer in a request; refuses one that the question does not offer. */
export function answerOf(question: Question, { option_id, text }: AnswerRequest): string {
  if (option_id !== undefined) {
    if (question.options.some(({ id }) => id === option_id)) return option_id;
    throw fail('UNKNOWN_OPTION', `The question has no option "${option_id}". ${choices(question)}`);
  }
  if (question.kind === 'text' && text !== undefined) return text;
  throw fail('UNKNOWN_OPTION', `The question takes no text. ${choices(question)}`);
}

function choices({ options }: Question): string {
  if (options.length === 0) return 'Answer it with `text`.';
  const each = options.map(({ id, label }) => `${id} (${label})`);
  return `Answer with one of: ${each.join(', ')}.`;
}

/** Refuses an answer to a question that is not open. */
export function checkOpen({ id, status, answered_by: by }: Question): void {
  if (status === 'open') return;
  const what =
    status === 'answered'
      ? `was already answered${by === null ? '' : ` by ${by}`}.`
      : 'is closed: the agent does not wait for an answer any more.';
  const next = 'List the open ones with `ctl agent questions`.';
  throw fail('QUESTION_CLOSED', `The question ${id} ${what} ${next}`);
}

/** Whether two readings of a screen show the same dialog. */
export function isSameQuestion(one: QuestionContent, other: QuestionContent): boolean {
  return signatureOf(one) === signatureOf(other);
}

function signatureOf({ title, body, options }: QuestionContent): string {
  return JSON.stringify([title, body, options.map(({ id, label }) => [id, label])]);
}
