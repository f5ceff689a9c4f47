import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Answers a question, and waits until the agent has taken the answer. */
export function answerQuestion(
  { questions, sessions }: Pick<DaemonContext, 'questions' | 'sessions'>,
  id: string,
  request: DaemonSchema<'AnswerRequest'>,
  by: string,
): Promise<DaemonSchema<'Question'>> {
  return questions.answer(id, request, by, (stored, answer) => sessions.answer(stored, answer));
}
