import { checkDescribed } from './description.js';
import type { Message } from './proto.js';

export interface RestAnswer {
  status: number;
  headers: Headers;
  body: Message;
  text: string;
}

export interface RestFailure {
  status: number;
  code: number;
  message: string;
  reason: string;
  metadata: Record<string, string>;
  details: Message[];
  headers: Headers;
}

const json = { 'content-type': 'application/json' };

/** Plain fetch. */
export class RestClient {
  constructor(
    private readonly base: string,
    private readonly headers: Record<string, string> = {},
  ) {}

  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<RestAnswer> {
    const response = await fetch(this.base + path, {
      method,
      headers: { ...(body !== undefined && json), ...this.headers, ...headers },
      ...(body !== undefined && { body: bodyOf(body) }),
    });
    const text = await response.text();
    const answer = { status: response.status, headers: response.headers, text, body: jsonOf(text) };
    if (response.headers.get('content-type') === 'application/json') {
      checkDescribed(method, path, answer.status, answer.body);
    }
    return answer;
  }

  /** The response of a call that must succeed. */
  async ok(method: string, path: string, body?: unknown): Promise<Message> {
    const answer = await this.send(method, path, body);
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.body;
  }

  /** The refusal of a call that must fail. */
  async refusal(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<RestFailure> {
    const answer = await this.send(method, path, body, headers);
    if (answer.status < 400) throw new Error(`${method} ${path} was not refused: ${answer.text}`);
    return restFailure(answer);
  }

  /** A response that is read in chunks. */
  async open(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<OpenAnswer> {
    const abort = new AbortController();
    const response = await fetch(this.base + path, {
      method,
      headers: { ...(body !== undefined && json), ...this.headers, ...headers },
      ...(body !== undefined && { body: bodyOf(body) }),
      signal: abort.signal,
    });
    return new OpenAnswer(response, abort);
  }
}

export function restFailure({ status, body, headers }: RestAnswer): RestFailure {
  const details = body['details'] as Message[];
  const info = details[0]!;
  return {
    status,
    code: Number(body['code']),
    message: String(body['message']),
    reason: String(info['reason']),
    metadata: (info['metadata'] ?? {}) as Record<string, string>,
    details,
    headers,
  };
}

function bodyOf(body: unknown): NonNullable<RequestInit['body']> {
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  return JSON.stringify(body);
}

function jsonOf(text: string): Message {
  try {
    return JSON.parse(text) as Message;
  } catch {
    return {};
  }
}

/** The lines of a response as they arrive. */
export class OpenAnswer {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = '';

  constructor(
    readonly response: Response,
    private readonly abort: AbortController,
  ) {
    this.#reader = response.body!.getReader();
  }

  /** The text up to the next separator; undefined at the end. */
  async next(separator = '\n'): Promise<string | undefined> {
    for (;;) {
      const at = this.#text.indexOf(separator);
      if (at !== -1) {
        const piece = this.#text.slice(0, at);
        this.#text = this.#text.slice(at + separator.length);
        return piece;
      }
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#text += this.#decoder.decode(value, { stream: true });
    }
  }

  /** The next line as JSON. */
  async line(): Promise<Message> {
    const line = await this.next();
    if (line === undefined) throw new Error('The answer has ended');
    return JSON.parse(line) as Message;
  }

  close(): void {
    this.abort.abort();
  }
}
