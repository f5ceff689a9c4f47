import type { OperationDescription, ResponseDescription } from './document.js';
import type { UntypedResponse } from './handlers.js';
import type { Problem } from './problem.js';
import type { Check, DocumentSchemas } from './schemas.js';

/** Checks every response against the OpenAPI document, in tests. */
export class ResponseCheck {
  readonly #schemas: DocumentSchemas;
  readonly #report: (difference: string) => void;
  readonly #checks = new Map<string, Check>();

  constructor(schemas: DocumentSchemas, report: (difference: string) => void) {
    this.#schemas = schemas;
    this.#report = report;
  }

  checkResponse(operation: OperationDescription, answer: UntypedResponse): void {
    const isEmpty = answer.content === undefined && answer.body === undefined;
    const mediaType = answer.contentType ?? 'application/json';
    const response = this.#responseFor(operation, answer.status);
    if (!response) return;
    if (isEmpty) {
      if (response.contents.length > 0)
        this.#reportResponse(operation, answer.status, 'has no body');
      return;
    }
    // As serialized: undefined members are dropped and dates are text.
    const value = answer.content === undefined ? asSent(answer.body) : undefined;
    this.#checkContent(operation, response, mediaType, value);
  }

  checkProblem(operation: OperationDescription, problem: object, code: string | undefined): void {
    const { status } = problem as Problem;
    if (code !== undefined && !operation.codes.includes(code)) {
      this.#report(`${operation.id} responds with ${code}, which is not in its x-codes`);
    }
    const response = this.#responseFor(operation, status);
    if (response)
      this.#checkContent(operation, response, 'application/problem+json', asSent(problem));
  }

  #responseFor(operation: OperationDescription, status: number): ResponseDescription | undefined {
    const response = operation.responses.find((known) => known.status === status);
    if (!response) this.#report(`${operation.id} responds with ${status}, which is not documented`);
    return response;
  }

  #checkContent(
    operation: OperationDescription,
    response: ResponseDescription,
    mediaType: string,
    value: unknown,
  ): void {
    const essence = mediaType.split(';')[0]!.trim();
    const content = response.contents.find((known) => known.mediaType === essence);
    if (!content) {
      this.#reportResponse(operation, response.status, `is ${essence}, which is not documented`);
      return;
    }
    if (content.pointer === undefined || value === undefined) return;
    let check = this.#checks.get(content.pointer);
    if (!check) this.#checks.set(content.pointer, (check = this.#schemas.at(content.pointer)));
    if (check.accepts(value)) return;
    for (const { pointer, message } of check.faults(value)) {
      this.#reportResponse(
        operation,
        response.status,
        `does not fit its schema: ${pointer} ${message}`,
      );
    }
  }

  #reportResponse(operation: OperationDescription, status: number, what: string): void {
    this.#report(`The ${status} response of ${operation.id} ${what}`);
  }
}

function asSent(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
