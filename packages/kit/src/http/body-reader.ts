import type { IncomingHttpHeaders } from 'node:http';
import { Refusal } from '../base/errors.js';
import { invalidBody, malformedBody, mediaTypeOf } from './body.js';
import type { BodyParser } from './body.js';
import type { OperationDescription } from './document.js';
import type { HttpErrorCodes } from './problem.js';
import type { Check, DocumentSchemas } from './schemas.js';

export interface BodyReaderOptions {
  schemas: DocumentSchemas;
  httpErrorCodes: HttpErrorCodes;
  limitBytes: number;
  fillDefaults: boolean;
  parsers: Readonly<Record<string, BodyParser>>;
}

export interface ReadBody {
  value: unknown;
  /** The schema check; undefined when the content has no schema. */
  check: Check | undefined;
}

interface Form {
  parse: BodyParser;
  check: Check | undefined;
}

/** Checks the body of one operation: size, media type, syntax and schema, in that order. */
export class BodyReader {
  readonly #operation: OperationDescription;
  readonly #httpErrorCodes: HttpErrorCodes;
  readonly #limitBytes: number;
  readonly #invalidCode: string;
  readonly #required: boolean;
  readonly #forms = new Map<string, Form>();
  readonly #anyForm: Form | undefined;

  constructor(operation: OperationDescription, options: BodyReaderOptions) {
    const { body, invalidCode } = operation;
    if (!body) throw new Error(`${operation.id} has no body`);
    if (invalidCode === undefined) {
      throw new Error(`${operation.id} takes a body and needs an x-invalid-code for a bad one`);
    }
    this.#operation = operation;
    this.#httpErrorCodes = options.httpErrorCodes;
    this.#limitBytes = options.limitBytes;
    this.#invalidCode = invalidCode;
    this.#required = body.required;
    const { fillDefaults, schemas, parsers } = options;
    if (operation.takesRawBody) this.#anyForm = { parse: (bytes) => bytes, check: undefined };
    for (const { mediaType, pointer } of operation.takesRawBody ? [] : body.contents) {
      const parse = parsers[mediaType];
      if (!parse) throw new Error(`${operation.id} takes ${mediaType}, which has no body parser`);
      const check = pointer === undefined ? undefined : schemas.at(pointer, { fillDefaults });
      this.#forms.set(mediaType, { parse, check });
    }
  }

  parse(bytes: Buffer | 'too large', headers: IncomingHttpHeaders): ReadBody {
    if (bytes === 'too large') throw this.#tooLarge();
    if (bytes.length === 0) {
      if (!this.#required) return { value: undefined, check: undefined };
      throw new Refusal(this.#invalidCode, `A body is required: send ${this.#mediaTypes()}.`);
    }
    if (this.#anyForm) return { value: bytes, check: undefined };
    const mediaType = mediaTypeOf(headers['content-type']);
    const form = mediaType === undefined ? undefined : this.#forms.get(mediaType);
    if (!form) throw this.#unsupported(headers['content-type']);
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new Refusal(
        this.#httpErrorCodes.unsupportedMediaType,
        `Content-Encoding ${encoding} is not supported: send the body without encoding.`,
        { headers: { 'accept-encoding': 'identity' } },
      );
    }
    try {
      return { value: form.parse(bytes), check: form.check };
    } catch (error) {
      throw malformedBody(this.#invalidCode, mediaType!, error);
    }
  }

  /** Throws a refusal when the value does not match its schema. */
  verify({ value, check }: ReadBody): void {
    if (check && !check.accepts(value)) throw invalidBody(this.#invalidCode, check.faults(value));
  }

  #mediaTypes(): string {
    return [...this.#forms.keys()].join(' or ');
  }

  #tooLarge(): Refusal {
    return new Refusal(
      this.#httpErrorCodes.payloadTooLarge,
      `The body is larger than the limit of ${this.#limitBytes} bytes of ${this.#operation.id}.`,
    );
  }

  #unsupported(given: string | undefined): Refusal {
    const found = given === undefined ? 'no Content-Type' : `Content-Type ${given}`;
    return new Refusal(
      this.#httpErrorCodes.unsupportedMediaType,
      `The request has ${found}: send ${this.#mediaTypes()}.`,
    );
  }
}
