import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import { answerQuestion } from '../operations/answer-question.js';
import type { DaemonContext } from '../operations/context.js';
import { getQuestion } from '../operations/get-question.js';
import { listQuestions } from '../operations/list-questions.js';
import type { Caller } from './access/authenticator.js';

type QuestionOperations = Pick<
  DaemonOperations,
  'listQuestions' | 'getQuestion' | 'answerQuestion'
>;

const defaultQuestions = 200;

export function questionHandlers(
  context: Pick<DaemonContext, 'questions' | 'sessions'>,
): Handlers<QuestionOperations, Caller> {
  return {
    listQuestions: ({ query: { status, session_id: sessionId, limit = defaultQuestions } }) => ({
      status: 200,
      body: listQuestions(context, { status, sessionId, limit }),
    }),
    getQuestion: ({ params }) => ({ status: 200, body: getQuestion(context, params.id) }),
    answerQuestion: async ({ params, body, principal }) => ({
      status: 200,
      body: await answerQuestion(context, params.id, body, principal.name),
    }),
  };
}
