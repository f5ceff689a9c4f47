/** A refusal of a server, or no answer at all, as something that can be thrown and shown. */
export class ApiProblem extends Error {
  /** 0 when no answer came. */
  readonly status: number;
  /** The stable machine word; `UNREACHABLE` when no answer came. */
  readonly code: string;
  /** The whole problem document, for the fields that some refusals carry beside the usual ones. */
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    super(textOf(body['detail']) ?? textOf(body['title']) ?? `The server answered ${status}.`);
    this.name = 'ApiProblem';
    this.status = status;
    this.code = textOf(body['code']) ?? 'UNKNOWN';
    this.body = body;
  }
}

/** The problem of an answer that is not a success. */
export function problemOf(status: number, error: unknown): ApiProblem {
  const isObject = typeof error === 'object' && error !== null;
  return new ApiProblem(status, isObject ? (error as Record<string, unknown>) : {});
}

/** No answer came: the daemon is gone, or the network is. */
export function unreachable(cause: unknown): ApiProblem {
  const problem = new ApiProblem(0, {
    code: 'UNREACHABLE',
    detail: 'The daemon does not answer. Is it running? Start it with `ctl up`.',
  });
  problem.cause = cause;
  return problem;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
