import type { IncomingHttpHeaders } from 'node:http';
import { Refusal } from '../errors.js';
import { invalidBody, malformedBody, mediaTypeOf } from './body.js';
import type { BodyParser } from './body.js';
import type { OperationDescription } from './document.js';
import type { GlueCodes } from './problem.js';
import type { Check, DocumentSchemas } from './schemas.js';

export interface BodyReaderOptions {
  schemas: DocumentSchemas;
  glueCodes: GlueCodes;
  limitBytes: number;
  fillDefaults: boolean;
  parsers: Readonly<Record<string, BodyParser>>;
}

export interface ReadBody {
  value: unknown;
  /** Holds the value against its schema; undefined when the content has none. */
  check: Check | undefined;
}

interface Form {
  parse: BodyParser;
  check: Check | undefined;
}

/** Reads the body of one operation: its size, its type, its syntax, its schema, in that order. */
export class BodyReader {
  readonly #operation: OperationDescription;
  readonly #glueCodes: GlueCodes;
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
    this.#glueCodes = options.glueCodes;
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
      throw new Refusal(this.#invalidCode, `A body is needed: send ${this.#mediaTypes()}.`);
    }
    if (this.#anyForm) return { value: bytes, check: undefined };
    const mediaType = mediaTypeOf(headers['content-type']);
    const form = mediaType === undefined ? undefined : this.#forms.get(mediaType);
    if (!form) throw this.#unsupported(headers['content-type']);
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new Refusal(
        this.#glueCodes.unsupportedMediaType,
        `Content-Encoding ${encoding} is not accepted here: send the body as it is.`,
        { headers: { 'accept-encoding': 'identity' } },
      );
    }
    try {
      return { value: form.parse(bytes), check: form.check };
    } catch (error) {
      throw malformedBody(this.#invalidCode, mediaType!, error);
    }
  }

  /** Refuses a value that does not fit. */
  verify({ value, check }: ReadBody): void {
    if (check && !check.accepts(value)) throw invalidBody(this.#invalidCode, check.faults(value));
  }

  #mediaTypes(): string {
    return [...this.#forms.keys()].join(' or ');
  }

  #tooLarge(): Refusal {
    return new Refusal(
      this.#glueCodes.payloadTooLarge,
      `The body is larger than the ${this.#limitBytes} bytes that ${this.#operation.id} takes.`,
    );
  }

  #unsupported(given: string | undefined): Refusal {
    const found = given === undefined ? 'no Content-Type' : `Content-Type ${given}`;
    return new Refusal(
      this.#glueCodes.unsupportedMediaType,
      `The request has ${found}: send ${this.#mediaTypes()}.`,
    );
  }
}
