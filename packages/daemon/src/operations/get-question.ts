import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** One question with its options. */
export function getQuestion(
  { questions }: Pick<DaemonContext, 'questions'>,
  id: string,
): DaemonSchema<'Question'> {
  return questions.get(id);
}
