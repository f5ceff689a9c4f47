/** A response that is not a success: `application/problem+json`, or whatever the server sent. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The stable machine code, such as QUEUE_NOT_FOUND; empty when the response has none. */
  readonly code: string;
  /** What happened and what to do, for people. */
  readonly detail: string;

  constructor(
    readonly status: number,
    /** The whole body, for members beyond those of every problem. */
    readonly body: unknown,
    /** How long the server asks to wait before the next attempt. */
    readonly retryAfterMs?: number,
  ) {
    const detail = textIn(body, 'detail') || textIn(body, 'title') || `HTTP status ${status}`;
    super(detail);
    this.detail = detail;
    this.code = textIn(body, 'code');
  }
}

function textIn(body: unknown, member: string): string {
  if (typeof body !== 'object' || body === null) return '';
  const value = (body as Record<string, unknown>)[member];
  return typeof value === 'string' ? value : '';
}
