/** What a server answered instead of a success: `application/problem+json`, or what came. */
export class Problem extends Error {
  override readonly name = 'Problem';
  /** The stable machine code, such as QUEUE_NOT_FOUND; empty when the answer has none. */
  readonly code: string;
  /** The whole answer, for fields beyond those of every problem. */
  readonly body: unknown;

  constructor(
    readonly status: number,
    body: unknown,
    /** How long the server asks to wait before the next try. */
    readonly retryAfterMs?: number,
  ) {
    const { code, detail, title } = fieldsOf(body);
    super(detail || title || `The server answered ${status}`);
    this.code = code;
    this.body = body;
  }
}

interface Answer<Body> {
  data?: Body;
  error?: unknown;
  response: Response;
}

/** The body of a success. Whatever else was answered is thrown as a Problem. */
export async function bodyOf<Body>(answer: Promise<Answer<Body>>): Promise<NonNullable<Body>> {
  const { data, error, response } = await answer;
  if (response.ok) return data as NonNullable<Body>;
  throw new Problem(response.status, error, retryAfterMs(response.headers));
}

function fieldsOf(body: unknown): Record<'code' | 'detail' | 'title', string> {
  const of = (key: string) => {
    if (typeof body !== 'object' || body === null) return '';
    const value = (body as Record<string, unknown>)[key];
    return typeof value === 'string' ? value : '';
  };
  return { code: of('code'), detail: of('detail'), title: of('title') };
}

function retryAfterMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
}
