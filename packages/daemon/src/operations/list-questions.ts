import type { DaemonSchema } from '@millrace/contract/daemon';
import type { QuestionFilter } from '../questions/questions.js';
import type { DaemonContext } from './context.js';

/** Lists questions of agents, newest first. */
export function listQuestions(
  { questions }: Pick<DaemonContext, 'questions'>,
  filter: QuestionFilter,
): DaemonSchema<'QuestionList'> {
  return { questions: questions.list(filter) };
}
