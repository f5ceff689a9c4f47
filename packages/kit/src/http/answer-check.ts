import type { OperationDescription, ResponseDescription } from './document.js';
import type { UntypedAnswer } from './handlers.js';
import type { Problem } from './problem.js';
import type { Check, DocumentSchemas } from './schemas.js';

/** Holds every answer against the document, so that a test run shows where a server leaves it. */
export class AnswerCheck {
  readonly #schemas: DocumentSchemas;
  readonly #report: (difference: string) => void;
  readonly #checks = new Map<string, Check>();

  constructor(schemas: DocumentSchemas, report: (difference: string) => void) {
    this.#schemas = schemas;
    this.#report = report;
  }

  seeAnswer(operation: OperationDescription, answer: UntypedAnswer): void {
    const isEmpty = answer.content === undefined && answer.body === undefined;
    const mediaType = answer.contentType ?? 'application/json';
    const response = this.#responseFor(operation, answer.status);
    if (!response) return;
    if (isEmpty) {
      if (response.contents.length > 0) this.#tell(operation, answer.status, 'has no body');
      return;
    }
    // As JSON carries it: undefined members are gone and dates are text.
    const value = answer.content === undefined ? asSent(answer.body) : undefined;
    this.#seeContent(operation, response, mediaType, value);
  }

  seeProblem(operation: OperationDescription, problem: object, code: string | undefined): void {
    const { status } = problem as Problem;
    if (code !== undefined && !operation.codes.includes(code)) {
      this.#report(`${operation.id} answers ${code}, which its x-codes leave out`);
    }
    const response = this.#responseFor(operation, status);
    if (response)
      this.#seeContent(operation, response, 'application/problem+json', asSent(problem));
  }

  #responseFor(operation: OperationDescription, status: number): ResponseDescription | undefined {
    const response = operation.responses.find((known) => known.status === status);
    if (!response) this.#report(`${operation.id} answers ${status}, which is not documented`);
    return response;
  }

  #seeContent(
    operation: OperationDescription,
    response: ResponseDescription,
    mediaType: string,
    value: unknown,
  ): void {
    const essence = mediaType.split(';')[0]!.trim();
    const content = response.contents.find((known) => known.mediaType === essence);
    if (!content) {
      this.#tell(operation, response.status, `is ${essence}, which is not documented`);
      return;
    }
    if (content.pointer === undefined || value === undefined) return;
    let check = this.#checks.get(content.pointer);
    if (!check) this.#checks.set(content.pointer, (check = this.#schemas.at(content.pointer)));
    if (check.accepts(value)) return;
    for (const { pointer, message } of check.faults(value)) {
      this.#tell(operation, response.status, `does not fit its schema: ${pointer} ${message}`);
    }
  }

  #tell(operation: OperationDescription, status: number, what: string): void {
    this.#report(`The ${status} answer of ${operation.id} ${what}`);
  }
}

function asSent(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
