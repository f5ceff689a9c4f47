import type * as AjvLibrary from 'ajv/dist/2020.js';
import type addFormats from 'ajv-formats';
import { createRequire } from 'node:module';
import type { Ajv2020, Options, SchemaObject, ValidateFunction } from 'ajv/dist/2020.js';
import type { FieldError } from '../base/errors.js';
import { escapePointer, valueAt, type OpenApiDocument } from './document.js';
import { explain, type Thing } from './explain.js';
import { isTimestamp } from '../base/units.js';

const base64Alphabet = /^[A-Za-z0-9+/]*={0,2}$/;

/** RFC 4648 section 4: padded, and with the unused bits of the last character zero. */
export function isBase64(text: string): boolean {
  if (text.length % 4 !== 0 || !base64Alphabet.test(text)) return false;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  if (padding === 0) return true;
  // With two pads four bits are unused, with one pad two.
  const last = text[text.length - padding - 1];
  return last !== undefined && (padding === 2 ? 'AQgw' : 'AEIMQUYcgkosw048').includes(last);
}

/** Validates values against a schema. */
export interface Check {
  /** Fast: stops at the first error. With `fillDefaults` it writes defaults into the value. */
  accepts(value: unknown): boolean;
  /** The errors of a value that was not accepted. */
  faults(value: unknown): FieldError[];
  /** Compiles the schema now instead of on the first `accepts`. */
  prepare(): void;
}

export interface CheckOptions {
  /** How the members of the value are called in messages. */
  thing?: Thing;
  fillDefaults?: boolean;
}

// Collecting all errors of a hostile body is expensive: for larger JSON only the first error is
// reported.
const maxFullReportChars = 65_536;
// Clamps a number to a maximum; the only custom keyword that changes a value.
const clampKeywords = { 'x-clamp-min': Math.max, 'x-clamp-max': Math.min };
const maxFullReportDepth = 64;
const maxFaults = 20;

/** Validators for the schemas of one OpenAPI document. */
export class DocumentSchemas {
  readonly #document: OpenApiDocument;
  #fast: Ajv2020 | undefined;
  #filling: Ajv2020 | undefined;
  #full: Ajv2020 | undefined;
  readonly #branches = new Map<object, ValidateFunction>();
  readonly #checks = new Map<string, Check>();
  #pointers: Map<unknown, string> | undefined;

  constructor(document: OpenApiDocument) {
    this.#document = document;
  }

  /** A check by a schema of `components/schemas`. */
  named(name: string, options: CheckOptions = {}): Check {
    const pointer = `/components/schemas/${escapePointer(name)}`;
    if (valueAt(this.#document, pointer) === undefined) {
      throw new Error(`The document has no schema ${name}`);
    }
    return this.at(pointer, options);
  }

  /** A check by the schema at a JSON pointer. */
  at(pointer: string, options: CheckOptions = {}): Check {
    return this.of({ $ref: schemaRef(pointer) }, options);
  }

  /** A check by another schema, which may refer to the document with `schemaRef`. */
  of(schema: SchemaObject, { thing = 'field', fillDefaults = false }: CheckOptions = {}): Check {
    const key = JSON.stringify([schema, thing, fillDefaults]);
    let check = this.#checks.get(key);
    if (!check) this.#checks.set(key, (check = this.#newCheck(schema, thing, fillDefaults)));
    return check;
  }

  #newCheck(schema: SchemaObject, thing: Thing, fillDefaults: boolean): Check {
    // Compiled on first use: a server has hundreds of schemas and uses few of them at startup.
    let fast: ValidateFunction | undefined;
    let full: ValidateFunction | undefined;
    const compiled = () =>
      (fast ??= (fillDefaults ? this.#fillingValidator() : this.#fastValidator()).compile(schema));
    return {
      accepts: (value) => (fast ?? compiled())(value),
      faults: (value) => {
        if (isSmall(value)) {
          full ??= this.#fullValidator().compile(schema);
          full(value);
          return this.#explained(full, thing);
        }
        const validate = compiled();
        validate(value);
        return this.#explained(validate, thing);
      },
      prepare: () => void compiled(),
    };
  }

  #fastValidator(): Ajv2020 {
    this.#fast ??= newValidator(this.#document, { allErrors: false });
    return this.#fast;
  }

  #explained(validate: ValidateFunction, thing: Thing): FieldError[] {
    const errors = validate.errors ?? [];
    return explain(errors, thing, (branches) => this.#branchChecks(branches)).slice(0, maxFaults);
  }

  #fillingValidator(): Ajv2020 {
    this.#filling ??= newValidator(withDefaultsBesideRefs(this.#document), {
      allErrors: false,
      useDefaults: true,
      // Strict mode refuses defaults inside `oneOf`; the plain validator has already checked
      // the schemas strictly.
      strictSchema: false,
    });
    return this.#filling;
  }

  #fullValidator(): Ajv2020 {
    this.#full ??= newValidator(this.#document, { allErrors: true });
    return this.#full;
  }

  /** Separate validators for the branches of a `oneOf` or `anyOf`. */
  #branchChecks(branches: readonly object[]): ValidateFunction[] | undefined {
    this.#pointers ??= pointersOf(this.#document);
    const pointer = this.#pointers.get(branches);
    if (pointer === undefined) return undefined;
    return branches.map((branch, index) => {
      let check = this.#branches.get(branch);
      if (!check) {
        check = this.#fullValidator().compile({ $ref: schemaRef(`${pointer}/${index}`) });
        this.#branches.set(branch, check);
      }
      return check;
    });
  }
}

const known = new WeakMap<OpenApiDocument, DocumentSchemas>();

/** The validators of a document, for all servers of this process: compiling them takes longest. */
export function schemasOf(document: OpenApiDocument): DocumentSchemas {
  let schemas = known.get(document);
  if (!schemas) known.set(document, (schemas = new DocumentSchemas(document)));
  return schemas;
}

/** A `$ref` to a JSON pointer of the document. */
export function schemaRef(pointer: string): string {
  return `contract#${pointer.split('/').map(encodeURIComponent).join('/')}`;
}

const require = createRequire(import.meta.url);

function newValidator(document: OpenApiDocument, options: Options): Ajv2020 {
  // Loaded on first use, so that health checks work earlier after a start.
  const library = require('ajv/dist/2020.js') as typeof AjvLibrary;
  const formats = require('ajv-formats') as typeof addFormats;
  const ajv = new library.Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    strictTuples: false,
    allowUnionTypes: true,
    validateSchema: false,
    verbose: true,
    ...options,
  });
  formats.default(ajv);
  ajv.addFormat('date-time', isTimestamp);
  ajv.addFormat('byte', isBase64);
  ajv.addVocabulary([...annotationsIn(document)]);
  for (const [keyword, nearest] of Object.entries(clampKeywords)) {
    ajv.addKeyword({
      keyword,
      type: 'number',
      schemaType: 'number',
      modifying: true,
      errors: false,
      compile: (bound: number) => (value, at) => {
        if (at) at.parentData[at.parentDataProperty] = nearest(value as number, bound);
        return true;
      },
    });
  }
  ajv.addSchema(document, 'contract', false, false);
  return ajv;
}

/** Annotation keywords, which strict mode would reject as unknown. */
function annotationsIn(document: OpenApiDocument): Set<string> {
  const names = new Set(Object.keys(document));
  for (const name of ['example', 'xml', 'externalDocs', 'discriminator']) names.add(name);
  eachObject(document, '', (value) => {
    for (const name of Object.keys(value)) if (name.startsWith('x-')) names.add(name);
  });
  for (const name of Object.keys(clampKeywords)) names.delete(name);
  return names;
}

function pointersOf(document: OpenApiDocument): Map<unknown, string> {
  const pointers = new Map<unknown, string>();
  eachObject(document, '', (value, pointer) => pointers.set(value, pointer));
  return pointers;
}

function eachObject(
  value: unknown,
  pointer: string,
  visit: (value: object, pointer: string) => void,
): void {
  if (typeof value !== 'object' || value === null) return;
  visit(value, pointer);
  for (const [key, child] of Object.entries(value)) {
    eachObject(child, `${pointer}/${escapePointer(key)}`, visit);
  }
}

/**
 * The validator fills in defaults of the property schema itself, not of a `$ref` target. The copy
 * has each default in both places.
 */
function withDefaultsBesideRefs(document: OpenApiDocument): OpenApiDocument {
  const copy = structuredClone(document);
  eachObject(copy, '', (value) => {
    const schema = value as Record<string, unknown>;
    const ref = schema['$ref'];
    if (typeof ref !== 'string' || !ref.startsWith('#/') || 'default' in schema) return;
    const target = valueAt(document, decodeURIComponent(ref.slice(1)));
    if (typeof target === 'object' && target !== null && 'default' in target) {
      schema['default'] = structuredClone(target.default);
    }
  });
  return copy;
}

function isSmall(value: unknown): boolean {
  let left = maxFullReportChars;
  const weigh = (part: unknown, depth: number): void => {
    left -= typeof part === 'string' ? part.length + 2 : 8;
    if (typeof part !== 'object' || part === null) return;
    if (depth === maxFullReportDepth) left = 0;
    for (const key in part) {
      if (left <= 0) return;
      left -= key.length;
      weigh((part as Record<string, unknown>)[key], depth + 1);
    }
  };
  weigh(value, 0);
  return left > 0;
}
