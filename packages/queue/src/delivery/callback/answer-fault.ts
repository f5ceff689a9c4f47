import { messageOf } from '@millrace/kit/errors';

/** What is known of an answer that could not be evaluated. */
interface AnswerFacts {
  httpStatus: number | null;
  remoteIp: string | null;
}

/** A bug of ours in the evaluation of an answer. The handler has run. */
export class AnswerFault extends Error {
  override readonly name = 'AnswerFault';

  constructor(
    readonly facts: AnswerFacts,
    cause: unknown,
  ) {
    super(messageOf(cause), { cause });
  }
}

/** Tells errors of the evaluation of an answer from those of its request. */
export function evaluated<Result>(facts: AnswerFacts, evaluate: () => Result): Result {
  try {
    return evaluate();
  } catch (error) {
    throw new AnswerFault(facts, error);
  }
}
