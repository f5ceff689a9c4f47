import type { DaemonOperations, DaemonSchema } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
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
      body: { questions: context.questions.list({ status, sessionId, limit }) },
    }),
    getQuestion: ({ params }) => ({ status: 200, body: context.questions.get(params.id) }),
    answerQuestion: async ({ params, body, principal }) => ({
      status: 200,
      body: await answerQuestion(context, params.id, body, principal.name),
    }),
  };
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
